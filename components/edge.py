"""The edge: what stands between clients and servers, of one of the kinds in components/edges."""

from collections.abc import Mapping

import pulumi
import pulumi_kubernetes as kubernetes

from components import charts
from components.addresses import ENVOY_GATEWAY_NAMESPACE, INGRESS_NGINX_NAMESPACE
from components.cluster import Cluster
from components.dependencies import needed
from components.edges import envoy_gateway, ingress_nginx, nlb
from components.edges.plan import EdgePlan, Manifest, Route
from components.namespace import Namespace


class Edge(pulumi.ComponentResource):
    """The edge of a stack. `urls` is what clients of each server call; None, or empty, where only AWS knows the name.

    When a stack is destroyed, load balancers go while the controller that removes them still runs: Pulumi waits for a
    namespace until all in it is gone, and for a Service until its load balancer is.
    """

    urls: dict[str, pulumi.Input[str] | None]

    def __init__(
        self,
        plan: EdgePlan,
        cluster: Cluster,
        namespaces: Mapping[str, Namespace],
        keys: pulumi.Output[dict[str, str]] | None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register the edge; `namespaces` are the servers', and `keys` the clients', None where a Secret has them."""
        super().__init__("neuron-serving:index:Edge", "edge", {}, opts)
        self._plan = plan
        self._namespaces = namespaces
        self._child = pulumi.ResourceOptions.merge(
            pulumi.ResourceOptions(parent=self, provider=cluster.provider), needed(opts)
        )
        self.urls = {route.server: plan.url(route) for route in plan.routes}
        if plan.installs_controller:
            self._wait_for(self._controller(cluster))
        match plan.settings.kind:
            case "envoy-gateway":
                self._envoy_gateway(keys)
            case "ingress-nginx":
                self._ingress_nginx(keys)
            case "nlb":
                self.urls = {route.server: self._load_balancer(route) for route in plan.routes}
        self.register_outputs({"urls": self.urls})

    def _wait_for(self, *resources: pulumi.Resource) -> None:
        """What is registered from now on waits for these."""
        self._child = pulumi.ResourceOptions.merge(self._child, pulumi.ResourceOptions(depends_on=resources))

    def _controller(self, cluster: Cluster) -> pulumi.Resource:
        # Imported here: pulumi_aws costs every run of a program about a second, also where nothing is on AWS.
        from components.load_balancer_controller import LoadBalancerController

        opts = pulumi.ResourceOptions.merge(pulumi.ResourceOptions(parent=self), needed(self._child))
        return LoadBalancerController(cluster.eks_name or "", cluster, self._plan.charts, opts)

    def _envoy_gateway(self, keys: pulumi.Output[dict[str, str]] | None) -> None:
        self._namespace(ENVOY_GATEWAY_NAMESPACE)
        values = envoy_gateway.chart_values()
        self._wait_for(
            charts.install_release(envoy_gateway.CHART, ENVOY_GATEWAY_NAMESPACE, values, self._plan.charts, self._child)
        )
        for manifest in envoy_gateway.manifests(self._plan, self._key_secrets(keys)):
            self._wait_for(self._custom_resource(manifest))

    def _ingress_nginx(self, keys: pulumi.Output[dict[str, str]] | None) -> None:
        pulumi.log.warn(ingress_nginx.RETIRED, self)
        self._namespace(INGRESS_NGINX_NAMESPACE)
        values = ingress_nginx.chart_values(self._plan)
        self._wait_for(
            charts.install(ingress_nginx.CHART, INGRESS_NGINX_NAMESPACE, values, self._plan.charts, self._child)
        )
        secrets = self._key_secrets(keys.apply(ingress_nginx.password_hashes) if keys is not None else None)
        for route in self._plan.routes:
            kubernetes.networking.v1.Ingress(
                route.server,
                metadata={
                    "name": route.server,
                    "namespace": self._namespaces[route.namespace].name,
                    "annotations": ingress_nginx.annotations(self._plan, route, secrets[route.namespace]),
                },
                spec=ingress_nginx.ingress_spec(self._plan, route),
                opts=self._child,
            )

    def _load_balancer(self, route: Route) -> pulumi.Output[str]:
        service = kubernetes.core.v1.Service(
            f"{route.server}-nlb",
            metadata={
                "namespace": self._namespaces[route.namespace].name,
                "annotations": nlb.service_annotations(self._plan, route),
            },
            spec=nlb.service_spec(self._plan, route),
            opts=self._child,
        )
        scheme = "https" if self._plan.is_https else "http"
        hosts = service.status.apply(_hosts)
        return hosts.apply(lambda found: f"{scheme}://{found[0]}/v1" if found else "")

    def _namespace(self, name: str) -> None:
        self._wait_for(kubernetes.core.v1.Namespace(name, metadata={"name": name}, opts=self._child))

    def _key_secrets(self, keys: pulumi.Output[dict[str, str]] | None) -> dict[str, pulumi.Input[str]]:
        """The name of the Secret with the keys in each namespace of a server."""
        return {name: self._key_secret(name, keys) for name in self._plan.namespaces}

    def _key_secret(self, namespace: str, keys: pulumi.Output[dict[str, str]] | None) -> pulumi.Input[str]:
        stated = self._plan.settings.api_key_secret
        if stated is not None:
            return stated
        secret = kubernetes.core.v1.Secret(
            f"{namespace}-api-keys",
            metadata={"namespace": self._namespaces[namespace].name},
            string_data=keys,
            opts=self._child,
        )
        return secret.metadata["name"]

    def _custom_resource(self, manifest: Manifest) -> pulumi.Resource:
        return kubernetes.apiextensions.CustomResource(
            f"{manifest.kind}-{manifest.name}".lower(),
            api_version=manifest.api_version,
            kind=manifest.kind,
            metadata=manifest.metadata(),
            spec=dict(manifest.spec),
            opts=self._child,
        )


def _hosts(status: kubernetes.core.v1.outputs.ServiceStatus | None) -> list[str]:
    """The names of a Service's load balancer; none in a preview."""
    balancer = status.load_balancer if status else None
    return [one.hostname for one in balancer.ingress or [] if one.hostname] if balancer else []
