"""Where serving pods run: chips per pod, pods per pool, and each pod's share of its node."""

from collections.abc import Iterable
from dataclasses import dataclass

from neuron.instances import InstanceType

# (src) a saturated server used 384 millicores of its 4000; the other half of the share is left to the daemons of the
# node and to bursts such as a compilation, which no limit holds back.
CPU_REQUEST_SHARE = 0.5
# The scheduler that asks the Neuron scheduler extension, as the Neuron Helm chart names it.
NEURON_SCHEDULER = "my-scheduler"


@dataclass(frozen=True)
class Pool:
    """Nodes of one instance type; `nodes` is the most that the pool may grow to."""

    instance: InstanceType
    nodes: int


def allowed_tensor_parallel(instance: InstanceType) -> tuple[int, ...]:
    """The tensor parallel degrees that divide the cores of one chip, or use whole chips that divide the instance's."""
    cores = instance.logical_cores_per_chip
    within_a_chip = [degree for degree in range(1, cores + 1) if cores % degree == 0]
    whole_chips = [cores * chips for chips in range(2, instance.chips + 1) if instance.chips % chips == 0]
    return tuple(within_a_chip + whole_chips)


def chips_per_pod(tensor_parallel: int, instance: InstanceType) -> int:
    """Chips that a pod of that degree asks for; a chip is never shared between pods."""
    return -(-tensor_parallel // instance.logical_cores_per_chip)


def needs_neighbouring_chips(chips: int, instance: InstanceType) -> bool:
    """Whether a pod's chips must lie side by side, which only the Neuron scheduler extension sees to.

    One chip, or all of a node's, need no such care (Neuron documentation, "Neuron Scheduler Extension").
    """
    return 1 < chips < instance.chips


def cpu_request_millicores(chips: int, instance: InstanceType) -> int:
    """The CPU request of a pod that takes `chips` chips, in steps of 100 millicores."""
    share = instance.allocatable_cpu_millicores * chips / instance.chips
    return int(share * CPU_REQUEST_SHARE / 100) * 100


def free_slots(pool: Pool, chips: int, others: Iterable[int] = ()) -> int:
    """Pods of `chips` chips that the pool still holds beside pods that ask for `others` chips each.

    The others are packed largest first onto the fullest node that takes them; -1 where they do not fit at all.
    """
    free = [pool.instance.chips] * pool.nodes
    for needed in sorted(others, reverse=True):
        candidates = [index for index, left in enumerate(free) if left >= needed]
        if not candidates:
            return -1
        free[min(candidates, key=lambda index: free[index])] -= needed
    return sum(left // chips for left in free)
