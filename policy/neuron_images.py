"""The images of vLLM for Neuron in a stack, with the instance families that they may run on."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from neuron.images import neuron_vllm_version, parse_reference
from policy.manifests import Manifest
from policy.node_pools import node_pools
from policy.node_types import pool_types, stated_families
from policy.resources import Resource, Stack
from policy.rule import Violation
from policy.values import Node
from policy.workloads import Container, PodSpec, Workload, workloads


@dataclass(frozen=True)
class NeuronImage:
    """One container's image: vLLM's major and minor version, and the families, none where they are not known."""

    node: Node
    version: tuple[int, int]
    families: frozenset[str]
    where: str
    owner: Manifest

    def violation(self, what: str, fix: str) -> Violation:
        """A finding on this image."""
        return Violation(what, self.where, fix, self.owner)


def images_in_resource(resource: Resource) -> Iterator[NeuronImage]:
    """Every such image, with the families that its pod names."""
    for workload in workloads(resource):
        for pod in workload.pod_specs():
            yield from _images(workload, pod, stated_families(pod))


def images_in_stack(stack: Stack) -> Iterator[NeuronImage]:
    """The images whose pod names no family, with the families of the pools that it may run on."""
    pools = node_pools(stack)
    for workload in (one for resource in stack.resources if pools for one in workloads(resource)):
        for pod in workload.pod_specs():
            if not workload.is_partial and not stated_families(pod):
                yield from _images(workload, pod, (one.family for one in pool_types(pod, pools)))


def _images(workload: Workload, pod: PodSpec, families: Iterable[str]) -> Iterator[NeuronImage]:
    known = frozenset(families)
    for container in pod.containers():
        version = _version(container)
        if version is not None:
            node = container.node.at("image")
            yield NeuronImage(node, version, known, workload.place(container, node), workload.manifest)


def _version(container: Container) -> tuple[int, int] | None:
    return neuron_vllm_version(parse_reference(container.node.at("image").text() or ""))
