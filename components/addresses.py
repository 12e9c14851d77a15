"""Names by which layers know each other: the namespaces that charts go to, and the services that others call."""

MONITORING_NAMESPACE = "monitoring"
KEDA_NAMESPACE = "keda"
KARPENTER_NAMESPACE = "kube-system"
ENVOY_GATEWAY_NAMESPACE = "envoy-gateway-system"
INGRESS_NGINX_NAMESPACE = "ingress-nginx"

# The operator of the release `kube-prometheus-stack` names its Prometheus service so.
PROMETHEUS_URL = f"http://kube-prometheus-stack-prometheus.{MONITORING_NAMESPACE}.svc:9090"
