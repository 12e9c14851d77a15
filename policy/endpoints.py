"""How traffic from outside reaches pods: Services of type LoadBalancer and Ingresses, and what they point at."""

import ipaddress
from collections.abc import Iterator, Mapping

from policy.manifests import Manifest
from policy.values import Node
from policy.workloads import Workload

_SCHEME = "service.beta.kubernetes.io/aws-load-balancer-scheme"
_TYPE = "service.beta.kubernetes.io/aws-load-balancer-type"
# The AWS Load Balancer Controller takes these over, and makes internal load balancers unless told otherwise.
_CONTROLLER_TYPES = frozenset({"external", "nlb-ip"})
_INTERNET_FACING = "internet-facing"
# Annotations that make a load balancer internal, with the values that do.
_INTERNAL: Mapping[str, frozenset[str]] = {
    _SCHEME: frozenset({"internal"}),
    "service.beta.kubernetes.io/aws-load-balancer-internal": frozenset({"true", "0.0.0.0/0"}),
    "networking.gke.io/load-balancer-type": frozenset({"internal"}),
    "cloud.google.com/load-balancer-type": frozenset({"internal"}),
    "service.beta.kubernetes.io/azure-load-balancer-internal": frozenset({"true"}),
}
_SOURCE_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"

_INGRESS_GROUPS = frozenset({"networking.k8s.io", "extensions"})
_INGRESS_CLASS = "kubernetes.io/ingress.class"
_ALB_SCHEME = "alb.ingress.kubernetes.io/scheme"
_ALB_CLASS = "alb"
_PRIVATE_CLASS_WORDS = ("internal", "private")


def is_open_load_balancer(service: Manifest) -> bool:
    """Whether a Service has a load balancer that everyone on the Internet may reach, as far as it tells."""
    spec = service.node.at("spec")
    if not service.is_a("", "Service") or spec.at("type").text() != "LoadBalancer":
        return False
    return is_open_service(spec, annotations(service))


def is_open_service(spec: Node, notes: Node) -> bool:
    """Whether everyone on the Internet may reach the load balancer of a Service with this spec and these annotations.

    What is not known yet closes it; it has been noted as not seen.
    """
    if notes.is_unknown() or _restricts(spec.at("loadBalancerSourceRanges"), notes.at(_SOURCE_RANGES)):
        return False
    if _word(notes, _SCHEME) == _INTERNET_FACING:
        return True
    if any(notes.at(key).is_unknown() or _word(notes, key) in values for key, values in _INTERNAL.items()):
        return False
    return spec.at("loadBalancerClass").is_absent() and _word(notes, _TYPE) not in _CONTROLLER_TYPES


def is_open_ingress(ingress: Manifest) -> bool:
    """Whether everyone on the Internet may reach an Ingress: an ALB that says so, another class that says nothing."""
    if ingress.group not in _INGRESS_GROUPS or ingress.kind != "Ingress":
        return False
    notes = annotations(ingress)
    scheme, name = notes.at(_ALB_SCHEME), ingress.node.at("spec", "ingressClassName")
    if any(node.is_unknown() for node in (notes, scheme, name)):
        return False
    ingress_class = (name.text() or notes.at(_INGRESS_CLASS).text() or "").lower()
    if ingress_class == _ALB_CLASS or scheme.is_present():
        return _word(notes, _ALB_SCHEME) == _INTERNET_FACING
    return not any(word in ingress_class for word in _PRIVATE_CLASS_WORDS)


def annotations(manifest: Manifest) -> Node:
    """The object's annotations."""
    return manifest.node.at("metadata", "annotations")


def backends(ingress: Manifest) -> Iterator[str]:
    """The names of the Services that an Ingress points at."""
    spec = ingress.node.at("spec")
    nodes = [spec.at("defaultBackend"), spec.at("backend")]
    nodes += [
        path.at("backend") for rule in spec.at("rules").elements() for path in rule.at("http", "paths").elements()
    ]
    for node in nodes:
        # extensions/v1beta1 had the name in the backend itself.
        name = node.at("service", "name").text() or node.at("serviceName").text()
        if name is not None:
            yield name


def selects(service: Manifest, workload: Workload) -> bool:
    """Whether a Service certainly sends to the workload's pods."""
    wanted = {key: node.text() for key, node in service.node.at("spec", "selector").fields()}
    if not wanted or workload.is_partial or service.namespace != workload.manifest.namespace:
        return False
    return any(
        all(value is not None and labels.at(key).text() == value for key, value in wanted.items())
        for pod in workload.pod_specs()
        for labels in [pod.around[0].at("metadata", "labels")]
    )


def _restricts(*nodes: Node) -> bool:
    """Whether source ranges are stated that leave somebody out."""
    ranges = [element.text() for node in nodes for element in node.elements()]
    ranges += [part.strip() for node in nodes for part in (node.text() or "").split(",") if part.strip()]
    known = [one for one in ranges if one is not None]
    return any(node.is_unknown() for node in nodes) or (bool(ranges) and not any(map(_is_everyone, known)))


def _is_everyone(network: str) -> bool:
    try:
        return ipaddress.ip_network(network, strict=False).prefixlen == 0
    except ValueError:
        return False


def _word(notes: Node, key: str) -> str:
    return str(notes.at(key).scalar()).lower()
