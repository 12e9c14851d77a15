"""guarded-endpoint: what the Internet sends to a server passes something that limits and asks who it is."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pulumi_policy import Severity

from policy.endpoints import annotations, backends, is_open_ingress, is_open_load_balancer, selects
from policy.gateways import Gateways, route_backends
from policy.manifests import Manifest, ObjectKey, manifests
from policy.resources import Stack
from policy.rule import Rule, Violation
from policy.serving import serving_containers
from policy.workloads import Workload, workloads

# By ingress controller: annotations of which one at least limits, and one at least asks who it is.
_LIMITS = (
    "nginx.ingress.kubernetes.io/limit-connections",
    "nginx.ingress.kubernetes.io/limit-rps",
    "nginx.ingress.kubernetes.io/limit-rpm",
    "nginx.ingress.kubernetes.io/global-rate-limit",
    "nginx.org/limit-req-rate",
    "haproxy.org/rate-limit-requests",
    "haproxy-ingress.github.io/limit-rps",
    "haproxy-ingress.github.io/limit-connections",
    "alb.ingress.kubernetes.io/wafv2-acl-arn",
)
_AUTHENTICATION = (
    "nginx.ingress.kubernetes.io/auth-url",
    "nginx.ingress.kubernetes.io/auth-type",
    "nginx.ingress.kubernetes.io/auth-secret",
    "nginx.ingress.kubernetes.io/auth-tls-secret",
    "nginx.org/basic-auth-secret",
    "nginx.org/jwt-key",
    "haproxy.org/auth-type",
    "haproxy-ingress.github.io/auth-url",
    "haproxy-ingress.github.io/auth-secret",
    "alb.ingress.kubernetes.io/auth-type",
)
# Middlewares of Traefik and plugins of Kong are objects of their own, which may do both.
_EITHER = ("traefik.ingress.kubernetes.io/router.middlewares", "konghq.com/plugins")
_NO_AUTHENTICATION = "none"

_FIX = "make the load balancer internal, limit its source ranges, or put a gateway with limits and API keys in front"


def judge_stack(stack: Stack) -> Iterator[Violation]:
    """One violation for each open Service, Ingress or HTTPRoute whose next hop is a server."""
    servers = [
        workload
        for resource in stack.resources
        for workload in workloads(resource)
        if any(True for _ in serving_containers(workload))
    ]
    objects = [one for resource in stack.resources for one in manifests(resource)] if servers else []
    services = {one.key: one for one in objects if one.is_a("", "Service")}
    gateways = Gateways(objects)
    for manifest in objects:
        if is_open_load_balancer(manifest):
            yield from _points_at_server(manifest, [manifest], servers)
        elif is_open_ingress(manifest) and not _is_guarded(manifest):
            behind = [(manifest.namespace, name) for name in backends(manifest)]
            yield from _points_at_server(manifest, _named(behind, services), servers)
        elif gateways.is_open(manifest) and not gateways.is_guarded(manifest):
            yield from _points_at_server(manifest, _named(route_backends(manifest), services), servers)


def _named(names: Iterable[tuple[str, str]], services: Mapping[ObjectKey, Manifest]) -> list[Manifest]:
    """The Services of these namespaces and names, as far as the stack has them."""
    keys = [(namespace, "Service", name) for namespace, name in names]
    return [services[key] for key in keys if key in services]


def _points_at_server(
    entry: Manifest, services: Sequence[Manifest], servers: Sequence[Workload]
) -> Iterator[Violation]:
    for workload in servers:
        if any(selects(service, workload) for service in services):
            yield Violation(
                what=f"open to the Internet, and points straight at {workload.manifest}",
                where=str(entry),
                fix=_FIX,
                subject=entry,
            )
            return


def _is_guarded(ingress: Manifest) -> bool:
    """Whether an Ingress limits and asks who it is; what is not known yet counts as doing so."""
    return _has(ingress, _EITHER) or (_has(ingress, _LIMITS) and _has(ingress, _AUTHENTICATION))


def _has(ingress: Manifest, keys: Sequence[str]) -> bool:
    notes = annotations(ingress)
    values = [notes.at(key) for key in keys]
    return any(one.is_unknown() or (one.is_present() and one.scalar() != _NO_AUTHENTICATION) for one in values)


RULE = Rule(
    id="guarded-endpoint",
    title="A server is not open to the Internet",
    severity=Severity.HIGH,
    why=(
        "vLLM takes every request into a queue without end and asks nobody who he is outside /v1: 256 clients got no "
        "error and waited 17.8 s, and everyone reads /metrics and spends the accelerator's time."
    ),
    remediation=(
        "Put a gateway in front that answers 429 beyond a limit, wants an API key and passes /v1/* only.",
        "Give the server's own Service the type ClusterIP, or an internal load balancer.",
        "An Ingress needs annotations for both a limit and authentication, a route of Envoy Gateway a policy for each.",
    ),
    judge_stack=judge_stack,
)
