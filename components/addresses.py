"""Names by which layers know each other: the namespaces that charts go to, and the services that others call."""

from types import MappingProxyType

MONITORING_NAMESPACE = "monitoring"
KEDA_NAMESPACE = "keda"
ADAPTER_NAMESPACE = "prometheus-adapter"
KARPENTER_NAMESPACE = "kube-system"
ENVOY_GATEWAY_NAMESPACE = "envoy-gateway-system"
INGRESS_NGINX_NAMESPACE = "ingress-nginx"
# Where the proxies of an edge run, by its kind; a load balancer runs nowhere.
EDGE_NAMESPACES = MappingProxyType({"envoy-gateway": ENVOY_GATEWAY_NAMESPACE, "ingress-nginx": INGRESS_NGINX_NAMESPACE})

# The operator of the release `kube-prometheus-stack` names its Prometheus service so.
PROMETHEUS_URL = f"http://kube-prometheus-stack-prometheus.{MONITORING_NAMESPACE}.svc:9090"
