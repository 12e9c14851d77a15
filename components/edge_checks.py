"""What the edge's values mean together, and with the servers behind it."""

from collections.abc import Iterator
from ipaddress import IPv4Network

from components.faults import Fault
from components.settings import Settings
from components.settings.edge import GATEWAYS, EdgeSettings
from neuron.edge import LOAD_BALANCER_IDLE_CEILING_SECONDS, LOAD_BALANCER_IDLE_SECONDS


def check_edge(settings: Settings) -> Iterator[Fault]:
    """All faults of a well-formed `edge` section; none for a stack without one."""
    edge = settings.edge
    if edge is None or edge.kind == "none":
        return
    if not settings.serving:
        yield Fault(
            "edge", f"{edge.kind} in a stack without servers", "an edge before servers", "move it to their stack"
        )
    yield from _tls(edge)
    yield from _reach(edge)
    yield from _gateway_only(edge)
    yield from _controller(settings, edge)
    yield from _hosts(settings, edge)
    yield from _long_requests(settings, edge)


def check_api_keys(settings: Settings, has_keys: bool) -> Iterator[Fault]:
    """Whether a gateway has keys to ask for, in one place; `has_keys` says that the stack's secret is set."""
    edge = settings.edge
    if edge is None or edge.kind not in GATEWAYS:
        return
    if has_keys and edge.api_key_secret is not None:
        yield Fault("edge.apiKeySecret", f"{edge.api_key_secret} beside apiKeys", "one of the two", "drop one")
    if not has_keys and edge.api_key_secret is None:
        fix = 'pulumi config set --secret apiKeys \'{"team-a": "<key>"}\', or name a Secret in edge.apiKeySecret'
        yield Fault("edge.apiKeySecret", "no key that clients could show", "keys", fix)


def _tls(edge: EdgeSettings) -> Iterator[Fault]:
    if edge.tls is None:
        return
    stated = [edge.tls.certificate_arn, edge.tls.secret]
    if all(stated) or not any(stated):
        found = "both a certificateArn and a secret" if all(stated) else "neither certificateArn nor secret"
        yield Fault(
            "edge.tls", found, "one of the two", "state where TLS ends: at the load balancer, or at the gateway"
        )
    if edge.kind == "nlb" and edge.tls.secret is not None:
        fix = "set certificateArn"
        yield Fault("edge.tls.secret", f"{edge.tls.secret} for a load balancer", "a certificate of ACM", fix)


def _reach(edge: EdgeSettings) -> Iterator[Fault]:
    """Nothing is open to the world by accident, and no key crosses the Internet in clear."""
    if edge.scheme == "internal":
        return
    open_to_all = not edge.source_ranges or any(IPv4Network(one).prefixlen == 0 for one in edge.source_ranges)
    if edge.kind == "nlb" and open_to_all:
        yield Fault(
            "edge.sourceRanges",
            "everyone, for servers that know no key and no limit",
            "networks of yours",
            "state them, or set kind envoy-gateway",
        )
    if edge.tls is None and edge.kind in GATEWAYS:
        fix = "set edge.tls.certificateArn, or edge.tls.secret"
        yield Fault("edge.tls", "nothing, so keys cross the Internet in clear", "TLS", fix)


def _gateway_only(edge: EdgeSettings) -> Iterator[Fault]:
    """A load balancer that forwards connections cannot do these, and must not seem to."""
    if edge.kind in GATEWAYS:
        return
    stated = {"limits": edge.limits, "apiKeySecret": edge.api_key_secret, "hostname": edge.hostname}
    for key, value in stated.items():
        if value is not None:
            found = f"a value with kind {edge.kind}, which forwards connections and reads no request"
            yield Fault(f"edge.{key}", found, "none", "remove it, or set kind envoy-gateway")


def _controller(settings: Settings, edge: EdgeSettings) -> Iterator[Fault]:
    """Its role names the cluster, which only these modes know."""
    if edge.load_balancer_controller and settings.cluster.mode not in ("create", "existing"):
        found = f"true with cluster.mode {settings.cluster.mode}"
        fix = "leave it to the stack that makes the cluster, or install the controller yourself"
        yield Fault("edge.loadBalancerController", found, "false, or a mode that names an EKS cluster", fix)


def _hosts(settings: Settings, edge: EdgeSettings) -> Iterator[Fault]:
    if edge.kind in GATEWAYS and len(settings.serving) > 1 and edge.hostname is None:
        found = f"nothing for {len(settings.serving)} servers"
        yield Fault("edge.hostname", found, "a DNS name, below which each server gets its own", "set it")


def _long_requests(settings: Settings, edge: EdgeSettings) -> Iterator[Fault]:
    """A load balancer forgets a connection that is silent for too long, as one is whose answer is no stream."""
    at_load_balancer = edge.tls is not None and edge.tls.certificate_arn is not None
    most = LOAD_BALANCER_IDLE_SECONDS if at_load_balancer else LOAD_BALANCER_IDLE_CEILING_SECONDS
    for index, one in enumerate(settings.serving):
        if one.longest_request_seconds > most:
            fix = "lower it, or end TLS at the gateway (edge.tls.secret)" if at_load_balancer else "lower it"
            found = f"{one.longest_request_seconds}, longer than the load balancer keeps a silent connection"
            yield Fault(f"serving[{index}].longestRequestSeconds", found, f"{most} or less", fix)
