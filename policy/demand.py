"""How many Neuron pods a stack runs at most, and what of its pools they leave free."""

from collections.abc import Iterable, Sequence
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
from policy.autoscalers import ReplicaMaxima, autoscaler_maxima
from policy.manifests import Manifest
from policy.node_pools import NodePool
from policy.resources import Stack
from policy.workloads import Container, PodSpec, Workload, workloads

# KServe has no `replicas`; Ray has both, and only its autoscaler minds the maximum.
_REPLICA_FIELDS = ("replicas", "maxReplicas", "minReplicas")


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
    maxima = autoscaler_maxima(stack)
    return tuple(
        Demand(workload, pod, claimed_devices(pod, workload, claims), pods_at_most(workload, pod, maxima))
        for resource in stack.resources
        for workload in workloads(resource)
        if not workload.kind.ends and not workload.is_partial and asks_for_neuron(workload, claims)
        for pod in workload.pod_specs()
    )


@dataclass
class Occupancy:
    """A pool, the instance type to reckon with, and the cores of each pod on it.

    `is_overfull` is set once pods that could run nowhere else found no room.
    """

    pool: NodePool
    instance: InstanceType
    taken: list[int] = field(default_factory=list)
    is_overfull: bool = False

    @property
    def nodes(self) -> int | None:
        """How many nodes there can be at most; None where that is not known, or not limited."""
        return self.pool.nodes[self.instance] if self.pool.is_seen else None

    def __str__(self) -> str:
        return f"{self.pool.name} ({'any number of' if self.nodes is None else self.nodes} x {self.instance.name})"

    def free(self, cores: int) -> int | None:
        """How many more pods of that size there is room for; None where the number of nodes is None."""
        if self.is_overfull:
            return 0
        return None if self.nodes is None else self._slots(cores)

    def add(self, cores: int, pods: int) -> int:
        """Put as many of the pods on the pool as fit, and say how many those are."""
        fitting = min(pods, self._slots(cores))
        self.taken += [cores] * fitting
        return fitting

    def _slots(self, cores: int) -> int:
        # Reckoned in cores, so that pods that ask for chips and pods that ask for cores add up.
        node = replace(self.instance, chips=_cores_of(self.instance))
        return max(0, free_slots(Pool(node, self.nodes or 0), cores, self.taken))


class Placement:
    """Where the pods of a stack run, in the worst case for the one that looks for room."""

    def __init__(self, pools: Sequence[NodePool], all_demands: Sequence[Demand]) -> None:
        self._choices = [
            (one, frozenset(i for i, pool in enumerate(pools) if pool.takes(one.pod))) for one in all_demands
        ]
        self._sites = [(pool, _instance(pool, all_demands)) for pool in pools]
        self._worst_cases: dict[frozenset[int], list[Occupancy]] = {}

    def pools_for(self, demand: Demand) -> list[Occupancy]:
        """The pools that a demand can use, with all pods on them that may run there, its own included.

        A pod that could run elsewhere too is taken to stand in the way: nobody can promise that it does not.
        """
        wanted = next(choice for one, choice in self._choices if one is demand)
        if wanted not in self._worst_cases:
            self._worst_cases[wanted] = self._occupy(wanted)
        return [self._worst_cases[wanted][index] for index in sorted(wanted)]

    def _occupy(self, wanted: frozenset[int]) -> list[Occupancy]:
        occupancies = [Occupancy(pool, instance) for pool, instance in self._sites]
        for demand, choice in self._choices:
            _place(demand, [occupancies[index] for index in (*sorted(choice & wanted), *sorted(choice - wanted))])
        return occupancies


def _instance(pool: NodePool, all_demands: Sequence[Demand]) -> InstanceType:
    """The smallest type of the pool that holds its largest pod: nobody knows which type will come."""
    types = sorted(pool.nodes, key=lambda one: (_cores_of(one), one.vcpus))
    own = [demand for demand in all_demands if pool.takes(demand.pod)]
    fitting = (one for one in types if all((demand.cores(one) or 0) <= _cores_of(one) for demand in own))
    return next(fitting, types[-1])


def _place(demand: Demand, usable: Sequence[Occupancy]) -> None:
    left = demand.count or 0
    limited: list[Occupancy] = []
    for occupancy in usable:
        cores = demand.cores(occupancy.instance) or 0
        # A pod that no node can hold waits forever and takes no one's place.
        if occupancy.nodes is None or not 0 < cores <= _cores_of(occupancy.instance):
            continue
        limited.append(occupancy)
        left -= occupancy.add(cores, occupancy.nodes if demand.on_every_node else left)
    if left > 0 and all(one.nodes is not None for one in usable) and not demand.on_every_node:
        for occupancy in limited:
            occupancy.is_overfull = True


def _cores_of(instance: InstanceType) -> int:
    return instance.chips * instance.logical_cores_per_chip


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


def pods_at_most(workload: Workload, pod: PodSpec, maxima: ReplicaMaxima) -> int | None:
    """How many pods of a template there are at most, an autoscaler reckoned with; None where that is not known yet."""
    replicas = _replicas(pod)
    if replicas is None:
        return None
    manifest = workload.manifest
    if manifest.kind == "LeaderWorkerSet":
        replicas *= _pods_per_group(manifest, pod)
    return max(replicas, maxima.get(manifest.key, 0))


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
