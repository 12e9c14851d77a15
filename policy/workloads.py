"""The pod templates in Kubernetes objects, and their containers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from policy.manifests import Manifest, manifests
from policy.resources import Resource
from policy.values import Node

Path = tuple[str, ...]
# Stands for every element of a list.
EACH = "*"


_CONTAINER_LISTS = ("containers", "initContainers", "ephemeralContainers")
# KServe's predictor names its main container by model format instead: `model`, or the framework in older manifests.
_KSERVE_CONTAINERS = (
    "model",
    "huggingface",
    "pytorch",
    "triton",
    "tensorflow",
    "onnx",
    "sklearn",
    "xgboost",
    "lightgbm",
)


@dataclass(frozen=True)
class WorkloadKind:
    """Where a kind keeps its pod specs, whether its pods end by design, and fields that are a container themselves."""

    pod_specs: tuple[Path, ...]
    ends: bool = False
    container_fields: tuple[str, ...] = ()


_TEMPLATE: Path = ("spec", "template", "spec")
_CONTROLLER = WorkloadKind((_TEMPLATE,))


def _ray_cluster(*path: str) -> tuple[Path, ...]:
    return (
        (*path, "headGroupSpec", "template", "spec"),
        (*path, "workerGroupSpecs", EACH, "template", "spec"),
    )


# By API group and kind. KServe puts the fields of a pod spec straight into predictor, transformer and explainer.
WORKLOAD_KINDS: Mapping[tuple[str, str], WorkloadKind] = MappingProxyType(
    {
        ("", "Pod"): WorkloadKind((("spec",),)),
        ("", "ReplicationController"): _CONTROLLER,
        ("", "PodTemplate"): WorkloadKind((("template", "spec"),)),
        ("apps", "Deployment"): _CONTROLLER,
        ("apps", "StatefulSet"): _CONTROLLER,
        ("apps", "DaemonSet"): _CONTROLLER,
        ("apps", "ReplicaSet"): _CONTROLLER,
        ("extensions", "Deployment"): _CONTROLLER,
        ("extensions", "DaemonSet"): _CONTROLLER,
        ("extensions", "ReplicaSet"): _CONTROLLER,
        ("batch", "Job"): WorkloadKind((_TEMPLATE,), ends=True),
        ("batch", "CronJob"): WorkloadKind((("spec", "jobTemplate", "spec", "template", "spec"),), ends=True),
        ("jobset.x-k8s.io", "JobSet"): WorkloadKind(
            (("spec", "replicatedJobs", EACH, "template", *_TEMPLATE),), ends=True
        ),
        ("argoproj.io", "Rollout"): _CONTROLLER,
        ("serving.knative.dev", "Service"): _CONTROLLER,
        ("ray.io", "RayCluster"): WorkloadKind(_ray_cluster("spec")),
        ("ray.io", "RayService"): WorkloadKind(_ray_cluster("spec", "rayClusterConfig")),
        ("ray.io", "RayJob"): WorkloadKind(_ray_cluster("spec", "rayClusterSpec"), ends=True),
        ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): WorkloadKind(
            (
                ("spec", "leaderWorkerTemplate", "leaderTemplate", "spec"),
                ("spec", "leaderWorkerTemplate", "workerTemplate", "spec"),
            )
        ),
        ("serving.kserve.io", "InferenceService"): WorkloadKind(
            (
                ("spec", "predictor"),
                ("spec", "predictor", "workerSpec"),
                ("spec", "transformer"),
                ("spec", "explainer"),
            ),
            container_fields=_KSERVE_CONTAINERS,
        ),
        ("serving.kserve.io", "LLMInferenceService"): WorkloadKind(
            (
                ("spec", "template"),
                ("spec", "worker"),
                ("spec", "prefill", "template"),
                ("spec", "prefill", "worker"),
                ("spec", "router", "scheduler", "template"),
            )
        ),
    }
)


@dataclass(frozen=True)
class Container:
    """A container of a pod template. `field` is the list (or, in KServe, the key) that it stands in."""

    node: Node
    field: str

    @property
    def name(self) -> str:
        """The container's name; KServe's own may be without one."""
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
        """Every container: regular, init (native sidecars among them), ephemeral, KServe's own."""
        for field in _CONTAINER_LISTS:
            for node in self.node.at(field).elements():
                yield Container(node, field)
        for field in self.container_fields:
            if self.node.at(field).quiet().is_present():
                yield Container(self.node.at(field), field)


@dataclass(frozen=True)
class Workload:
    """An object that runs pods."""

    manifest: Manifest
    kind: WorkloadKind

    @property
    def stays_up(self) -> bool:
        """Whether its pods are to run on, as those that serve do."""
        if self.manifest.is_a("", "Pod"):
            return self.manifest.node.at("spec", "restartPolicy").text() in (None, "Always")
        return not self.kind.ends

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
        for element in chain[0].elements():
            yield from _resolve((element, *chain), path[1:])
    else:
        yield from _resolve((chain[0].at(path[0]), *chain), path[1:])
