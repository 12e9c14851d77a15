"""How many Neuron pods a stack runs at most, and what of its pools they leave free."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from neuron.instances import CHIP_RESOURCE, CORE_RESOURCE, InstanceType
from neuron.placement import Pool, free_slots
from policy.accelerators import (
    ALL_DEVICES,
    DeviceClaims,
    DeviceRequest,
    asks_for_neuron,
    claimed_devices,
    extended_resources,
)
from policy.manifests import Manifest, manifests
from policy.node_pools import NodePool
from policy.resources import Stack
from policy.workloads import Container, PodSpec, Workload, workloads

# https://keda.sh/docs/latest/reference/scaledobject-spec/#maxreplicacount
_KEDA_DEFAULT_MAXIMUM = 100
# KServe has no `replicas`; Ray has both, and only its autoscaler minds the maximum.
_REPLICA_FIELDS = ("replicas", "maxReplicas", "minReplicas")

# The largest number of replicas that an autoscaler may set, by namespace, kind and name of its target.
_Maxima = Mapping[tuple[str, str, str], int]


@dataclass(frozen=True)
class Demand:
    """The pods of one template. `count` is None where it is not known yet; a DaemonSet has one on every node."""

    workload: Workload
    pod: PodSpec
    claimed: tuple[DeviceRequest, ...]
    count: int | None

    @property
    def on_every_node(self) -> bool:
        """Whether the number of pods follows that of the nodes."""
        return self.workload.manifest.kind == "DaemonSet"

    def cores(self, instance: InstanceType) -> int | None:
        """NeuronCores that one pod takes on a node of that type; None if that is not known yet."""
        containers = list(self.pod.containers())
        running = _sum(_container_cores(one, instance) for one in containers if not one.is_init)
        starting = [_container_cores(one, instance) for one in containers if one.is_init]
        claimed = _sum(_claimed_cores(one, instance) for one in self.claimed)
        if running is None or claimed is None or None in starting:
            return None
        return max(running, *(cores or 0 for cores in starting), 0) + claimed


def demands(stack: Stack, claims: DeviceClaims) -> tuple[Demand, ...]:
    """The Neuron pods that stay on their nodes. Those of a Job leave, so they can only delay another pod."""
    maxima = _autoscaler_maxima(stack)
    return tuple(
        Demand(workload, pod, claimed_devices(pod, workload, claims), _count(workload, pod, maxima))
        for resource in stack.resources
        for workload in workloads(resource)
        if not workload.kind.ends and not workload.manifest.is_patch and asks_for_neuron(workload, claims)
        for pod in workload.pod_specs()
    )


@dataclass
class Occupancy:
    """A pool and the cores of each pod on it; `is_overfull` once pods that could run nowhere else did not fit."""

    pool: NodePool
    taken: list[int] = field(default_factory=list)
    is_overfull: bool = False

    def free(self, cores: int | None) -> int | None:
        """How many more pods of that size there is room for; None where that is not known, or not limited."""
        if self.is_overfull:
            return 0
        return None if self.pool.nodes is None or cores is None else self._slots(cores)

    def add(self, cores: int, pods: int) -> int:
        """Put as many of the pods on the pool as fit, and say how many those are."""
        fitting = min(pods, self._slots(cores))
        self.taken += [cores] * fitting
        return fitting

    def _slots(self, cores: int) -> int:
        # Reckoned in cores, so that pods that ask for chips and pods that ask for cores add up.
        instance = self.pool.instance
        node = replace(instance, chips=instance.chips * instance.logical_cores_per_chip)
        return max(0, free_slots(Pool(node, self.pool.nodes or 0), cores, self.taken)) if cores else 0


def occupy(pools: Sequence[NodePool], all_demands: Sequence[Demand]) -> tuple[Occupancy, ...]:
    """Put all pods of the stack on its pools. Those that few pools take choose first: no scheduler does better."""
    occupancies = tuple(Occupancy(pool) for pool in pools)
    choices = [(demand, [one for one in occupancies if one.pool.takes(demand.pod)]) for demand in all_demands]
    for demand, usable in sorted(choices, key=lambda choice: len(choice[1])):
        _place(demand, usable)
    return occupancies


def _place(demand: Demand, usable: Sequence[Occupancy]) -> None:
    left = demand.count or 0
    limited = [one for one in usable if one.pool.nodes is not None and demand.cores(one.pool.instance)]
    for occupancy in limited:
        wanted = (occupancy.pool.nodes or 0) if demand.on_every_node else left
        left -= occupancy.add(demand.cores(occupancy.pool.instance) or 0, wanted)
    if left > 0 and len(limited) == len(usable) and not demand.on_every_node:
        for occupancy in limited:
            occupancy.is_overfull = True


def _container_cores(container: Container, instance: InstanceType) -> int | None:
    cores = 0
    for name, count in extended_resources(container).items():
        if count is None:
            return None
        if name.startswith(CHIP_RESOURCE):
            cores += count if name == CORE_RESOURCE else count * instance.logical_cores_per_chip
    return cores


def _sum(counts: Iterable[int | None]) -> int | None:
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total


def _claimed_cores(request: DeviceRequest, instance: InstanceType) -> int | None:
    if not request.is_neuron:
        return 0
    chips = instance.chips if request.count == ALL_DEVICES else request.count
    return None if chips is None else int(chips) * instance.logical_cores_per_chip


def _count(workload: Workload, pod: PodSpec, maxima: _Maxima) -> int | None:
    replicas = _replicas(pod)
    if replicas is None:
        return None
    manifest = workload.manifest
    if manifest.kind == "LeaderWorkerSet":
        replicas *= _pods_per_group(manifest, pod)
    return max(replicas, maxima.get((manifest.namespace, manifest.kind, manifest.name), 0))


def _replicas(pod: PodSpec) -> int | None:
    """The number stated nearest around the template; 1, as everywhere in Kubernetes, if none is."""
    for node in (pod.node, *pod.around):
        for name in _REPLICA_FIELDS:
            stated = node.at(name)
            if not stated.is_absent():
                return stated.integer()
    return 1


def _pods_per_group(manifest: Manifest, pod: PodSpec) -> int:
    """Pods of this template in one group of a LeaderWorkerSet, whose leader may use the workers' template."""
    template = manifest.node.at("spec", "leaderWorkerTemplate")
    size = template.at("size").integer() or 1
    if template.at("leaderTemplate").is_absent():
        return size
    return 1 if ".leaderTemplate." in pod.node.path else size - 1


def _autoscaler_maxima(stack: Stack) -> _Maxima:
    maxima: dict[tuple[str, str, str], int] = {}
    for manifest in (one for resource in stack.resources for one in manifests(resource)):
        for target, maximum in _maximum(manifest):
            maxima[target] = max(maximum, maxima.get(target, 0))
    return maxima


def _maximum(manifest: Manifest) -> Iterator[tuple[tuple[str, str, str], int]]:
    if manifest.is_a("autoscaling", "HorizontalPodAutoscaler"):
        maximum = manifest.node.at("spec", "maxReplicas").integer()
    elif manifest.is_a("keda.sh", "ScaledObject"):
        stated = manifest.node.at("spec", "maxReplicaCount")
        maximum = _KEDA_DEFAULT_MAXIMUM if stated.is_absent() else stated.integer()
    else:
        return
    target = manifest.node.at("spec", "scaleTargetRef")
    name = target.at("name").text()
    if name is not None and maximum is not None:
        yield (manifest.namespace, target.at("kind").text() or "Deployment", name), maximum
