"""How traffic from outside reaches pods through the Gateway API, as far as Envoy Gateway's objects tell.

Other implementations have policies of their own, which are not known here: their routes are not judged.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from policy.endpoints import is_open_service
from policy.manifests import Manifest
from policy.values import Node

GATEWAY_API = "gateway.networking.k8s.io"
_ENVOY_API = "gateway.envoyproxy.io"
_ENVOY_CONTROLLER = "gateway.envoyproxy.io/gatewayclass-controller"
# Fields of the policies that limit, and that ask who it is; one of each is enough.
_LIMITS = ("circuitBreaker", "rateLimit")
_AUTHENTICATION = ("apiKeyAuth", "basicAuth", "extAuth", "jwt", "oidc")


@dataclass(frozen=True)
class Gateways:
    """The objects of a stack that gateways are made of."""

    objects: Sequence[Manifest]

    def is_open(self, route: Manifest) -> bool:
        """Whether everyone on the Internet may reach an HTTPRoute through one of its gateways.

        An unknown gateway, or one that is of another controller, counts as closed.
        """
        return route.is_a(GATEWAY_API, "HTTPRoute") and any(map(self._is_open_gateway, self._gateways(route)))

    def is_guarded(self, route: Manifest) -> bool:
        """Whether policies limit what reaches the route, and ask who it is; what is not known yet counts as both."""
        targets = [route, *self._gateways(route)]
        limits = self._has(targets, "BackendTrafficPolicy", _LIMITS)
        return limits and self._has(targets, "SecurityPolicy", _AUTHENTICATION)

    def _gateways(self, route: Manifest) -> Iterator[Manifest]:
        for parent in route.node.at("spec", "parentRefs").elements():
            namespace = parent.at("namespace").text() or route.namespace
            yield from self._named("Gateway", parent.at("name").text(), namespace)

    def _is_open_gateway(self, gateway: Manifest) -> bool:
        (*classes,) = self._named("GatewayClass", gateway.node.at("spec", "gatewayClassName").text())
        ours = [one for one in classes if one.node.at("spec", "controllerName").text() == _ENVOY_CONTROLLER]
        if not ours:
            return False
        own = gateway.node.at("spec", "infrastructure", "parametersRef")
        parameters = [own] if own.is_present() else [one.node.at("spec", "parametersRef") for one in ours]
        services = [
            proxy.node.at("spec", "provider", "kubernetes", "envoyService")
            for one in parameters
            for proxy in self._named("EnvoyProxy", one.at("name").text())
        ]
        # Without parameters the gateway makes a load balancer that says nothing, and is open.
        return not services or any(is_open_service(one, one.at("annotations")) for one in services)

    def _named(self, kind: str, name: str | None, namespace: str | None = None) -> Iterator[Manifest]:
        for one in self.objects:
            if one.kind == kind and one.name == name and namespace in (None, one.namespace):
                yield one

    def _has(self, targets: Sequence[Manifest], kind: str, fields: Sequence[str]) -> bool:
        """Whether a policy of that kind is for one of the targets and has one of the fields."""
        policies = [one for one in self.objects if one.is_a(_ENVOY_API, kind)]
        return any(
            _is_for(policy, target) and any(not policy.node.at("spec", field).is_absent() for field in fields)
            for policy in policies
            for target in targets
        )


def route_backends(route: Manifest) -> Iterator[tuple[str, str]]:
    """Namespace and name of the Services that a route points at."""
    for rule in route.node.at("spec", "rules").elements():
        for backend in rule.at("backendRefs").elements():
            name = backend.at("name").text()
            if name is not None:
                yield backend.at("namespace").text() or route.namespace, name


def _is_for(policy: Manifest, target: Manifest) -> bool:
    spec = policy.node.at("spec")
    references: list[Node] = [spec.at("targetRef"), *spec.at("targetRefs").elements()]
    return policy.namespace == target.namespace and any(
        (one.at("kind").text(), one.at("name").text()) == (target.kind, target.name) for one in references
    )
