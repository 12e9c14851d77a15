"""Which pods ask for accelerators, by extended resource or by a claim of dynamic resource allocation (DRA)."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from neuron.errors import ImpossibleInputError
from neuron.instances import CHIP_RESOURCE
from neuron.quantity import parse_quantity
from policy.manifests import Manifest, manifests
from policy.resources import Resource, Stack
from policy.values import Node
from policy.workloads import Container, PodSpec, Workload, workloads

_NEURON = re.compile(re.escape(CHIP_RESOURCE) + ".*")
_ACCELERATOR = re.compile(_NEURON.pattern + r"|nvidia\.com/gpu.*|amd\.com/gpu")
_NEURON_DEVICE_CLASS = "neuron.aws.com"
_DEVICE_CLASSES = frozenset({_NEURON_DEVICE_CLASS, "gpu.nvidia.com", "mig.nvidia.com", "gpu.amd.com"})
_DRA_GROUP = "resource.k8s.io"
# A DRA request of this mode takes every device of the node.
ALL_DEVICES: Literal["All"] = "All"


@dataclass(frozen=True)
class DeviceRequest:
    """One request of a DRA claim. `count` is None where it is not known; ALL_DEVICES where it takes a whole node."""

    device_class: str
    count: int | Literal["All"] | None

    @property
    def is_neuron(self) -> bool:
        """Whether it is for Neuron chips."""
        return self.device_class == _NEURON_DEVICE_CLASS


# The accelerator requests of each claim and claim template, by kind, namespace and name.
DeviceClaims = Mapping[tuple[str, str, str], tuple[DeviceRequest, ...]]
# What a rule knows that sees one resource only.
NO_CLAIMS: DeviceClaims = MappingProxyType({})


def device_claims(stack: Stack) -> DeviceClaims:
    """The claims in a stack that are for accelerators."""
    found: dict[tuple[str, str, str], tuple[DeviceRequest, ...]] = {}
    for resource in stack.resources:
        for manifest in manifests(resource):
            requests = tuple(_device_requests(manifest))
            if requests:
                found[manifest.kind, manifest.namespace, manifest.name] = requests
    return MappingProxyType(found)


def extended_resources(container: Container) -> dict[str, int | None]:
    """The accelerators that a container asks for, by resource name; None where the number is not known.

    Limits and requests of an extended resource are equal; either may be left out.
    """
    asked: dict[str, int | None] = {}
    for field in ("requests", "limits"):
        for name, node in container.node.at("resources", field).fields():
            if _ACCELERATOR.fullmatch(name) and (count := _count(node)) != 0:
                asked[name] = count
    return asked


def claimed_devices(pod: PodSpec, workload: Workload, claims: DeviceClaims) -> tuple[DeviceRequest, ...]:
    """The accelerators that a pod asks for through claims that the stack holds."""
    requests: list[DeviceRequest] = []
    for claim in pod.node.at("resourceClaims").elements() if claims else ():
        for field, kind in (
            ("resourceClaimTemplateName", "ResourceClaimTemplate"),
            ("resourceClaimName", "ResourceClaim"),
        ):
            requests += claims.get((kind, workload.manifest.namespace, claim.at(field).text() or ""), ())
    return tuple(requests)


def asks_for_accelerator(workload: Workload, claims: DeviceClaims = NO_CLAIMS) -> bool:
    """Whether the workload is an accelerator workload."""
    return any(_asks(pod, workload, claims, _ACCELERATOR, _DEVICE_CLASSES) for pod in workload.pod_specs())


def asks_for_neuron(workload: Workload, claims: DeviceClaims = NO_CLAIMS) -> bool:
    """Whether the workload is a Neuron workload."""
    neuron_class = frozenset({_NEURON_DEVICE_CLASS})
    return any(_asks(pod, workload, claims, _NEURON, neuron_class) for pod in workload.pod_specs())


def accelerator_workloads(resource: Resource) -> Iterator[Workload]:
    """The accelerator workloads that one resource shows by itself: those that ask for an extended resource."""
    return (one for one in workloads(resource) if asks_for_accelerator(one))


def claiming_workloads(stack: Stack, claims: DeviceClaims) -> Iterator[Workload]:
    """The accelerator workloads that only the stack shows: those that ask through DRA claims alone."""
    for resource in stack.resources if claims else ():
        for workload in workloads(resource):
            if asks_for_accelerator(workload, claims) and not asks_for_accelerator(workload):
                yield workload


def _asks(
    pod: PodSpec, workload: Workload, claims: DeviceClaims, names: re.Pattern[str], classes: frozenset[str]
) -> bool:
    if any(names.fullmatch(name) for container in pod.containers() for name in extended_resources(container)):
        return True
    return any(request.device_class in classes for request in claimed_devices(pod, workload, claims))


def _count(node: Node) -> int | None:
    """0 for nothing, None for what is not known or no quantity (which the API server would refuse)."""
    value = node.number()
    if value is None:
        return 0 if node.is_absent() else None
    try:
        return int(parse_quantity(value))
    except ImpossibleInputError:
        return None


def _device_requests(manifest: Manifest) -> Iterator[DeviceRequest]:
    if manifest.is_a(_DRA_GROUP, "ResourceClaimTemplate"):
        devices = manifest.node.at("spec", "spec", "devices")
    elif manifest.is_a(_DRA_GROUP, "ResourceClaim"):
        devices = manifest.node.at("spec", "devices")
    else:
        return
    for request in devices.at("requests").elements():
        # resource.k8s.io/v1 has an object `exactly` (or alternatives); v1beta1 had its fields in the request itself.
        exactly = request.at("exactly")
        first_alternative = request.at("firstAvailable", 0)
        for node in (request, exactly, first_alternative):
            device_class = node.at("deviceClassName").text()
            if device_class in _DEVICE_CLASSES:
                yield DeviceRequest(device_class, _device_count(node))


def _device_count(node: Node) -> int | Literal["All"] | None:
    if node.at("allocationMode").text() == ALL_DEVICES:
        return ALL_DEVICES
    count = node.at("count")
    return 1 if count.is_absent() else count.integer()
