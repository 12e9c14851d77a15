"""The pod templates in Kubernetes objects, and their containers."""

from collections.abc import Iterator
from dataclasses import dataclass

from policy.manifests import Manifest, manifests
from policy.resources import Resource
from policy.values import Node
from policy.workload_kinds import EACH, WORKLOAD_KINDS, Path, WorkloadKind

_CONTAINER_LISTS = ("containers", "initContainers", "ephemeralContainers")


@dataclass(frozen=True)
class Container:
    """A container of a pod template. `field` is the list, or the key of its own, that it stands in."""

    node: Node
    field: str

    @property
    def name(self) -> str:
        """The container's name; one with a key of its own may be without."""
        return self.node.at("name").quiet().text() or self.field

    @property
    def is_init(self) -> bool:
        """Whether it runs to its end before the others start. A native sidecar, which goes on, does not."""
        return self.field == "initContainers" and self.node.at("restartPolicy").text() != "Always"

    @property
    def is_ephemeral(self) -> bool:
        """Whether it is a debugging container, which may have neither resources nor probes."""
        return self.field == "ephemeralContainers"


@dataclass(frozen=True)
class PodSpec:
    """The pod spec of a template, and the objects around it, the nearest first."""

    node: Node
    around: tuple[Node, ...]
    container_fields: tuple[str, ...] = ()

    def containers(self) -> Iterator[Container]:
        """Every container: regular, init (native sidecars among them), ephemeral, those with a key of their own."""
        for field in _CONTAINER_LISTS:
            for node in self.node.at(field).elements():
                yield Container(node, field)
        for field in self.container_fields:
            if self.node.at(field).is_present():
                yield Container(self.node.at(field), field)


@dataclass(frozen=True)
class Workload:
    """An object that runs pods, or describes some for others to run."""

    manifest: Manifest
    kind: WorkloadKind

    @property
    def stays_up(self) -> bool:
        """Whether its pods are to run on, as those that serve do."""
        if self.manifest.is_a("", "Pod"):
            return self.manifest.node.at("spec", "restartPolicy").text() in (None, "Always")
        return not self.kind.ends

    @property
    def is_partial(self) -> bool:
        """Whether what is missing in its pod specs may stand in another object."""
        return self.manifest.is_patch or self.kind.is_partial

    def pod_specs(self) -> Iterator[PodSpec]:
        """The pod specs that are there; an unknown one is noted as not seen."""
        for path in self.kind.pod_specs:
            for node, *around in _resolve((self.manifest.node,), path):
                if not node.is_absent():
                    yield PodSpec(node, tuple(around), self.kind.container_fields)

    def containers(self) -> Iterator[Container]:
        """The containers of all its pod specs."""
        for pod in self.pod_specs():
            yield from pod.containers()

    def place(self, container: Container, node: Node | None = None) -> str:
        """How a message names a container, or a value inside it: workload, container, path."""
        return f"{self.manifest}, container {container.name} ({(node or container.node).path})"


def workloads(resource: Resource) -> Iterator[Workload]:
    """The workloads in a resource."""
    for manifest in manifests(resource):
        kind = WORKLOAD_KINDS.get((manifest.group, manifest.kind))
        if kind is not None:
            yield Workload(manifest, kind)


def _resolve(chain: tuple[Node, ...], path: Path) -> Iterator[tuple[Node, ...]]:
    """The nodes at the path, each followed by those that it lies in."""
    if not path:
        yield chain
    elif path[0] == EACH:
        for element in (*chain[0].elements(), *(value for _, value in chain[0].fields())):
            yield from _resolve((element, *chain), path[1:])
    else:
        yield from _resolve((chain[0].at(path[0]), *chain), path[1:])
