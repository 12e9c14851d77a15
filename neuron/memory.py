"""Host memory: what loading a model takes, and which instance types have it.

The limit of a model on Neuron is the host, not the device: weights are sharded in host memory on their way to the chip.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from neuron.instances import INSTANCE_TYPES, InstanceType
from neuron.model import Model

# (src) Qwen3-4B, a 12 GB checkpoint, grew past 28 GiB: about three copies while it is converted and sharded.
LOAD_PEAK_FACTOR = 3
# Python, vLLM and the Neuron runtime beside the weights. Not measured alone; TinyLlama served within it.
PROCESS_GIB = 2
# /dev/shm for the tensor-parallel workers; a memory-backed volume counts against the container's limit.
SHARED_MEMORY_GIB = 1
# Requests of the daemons that every EKS node runs (CNI, kube-proxy, device plugin, CSI node, monitors).
DAEMONS_MIB = 512

_GIB_PER_GB = 1000**3 / 1024**3


@dataclass(frozen=True)
class Fit:
    """Whether a model's serving pod fits one instance type; all figures in MiB."""

    needed_mib: int
    available_mib: int

    @property
    def fits(self) -> bool:
        """True where the pod's memory limit is within what the node can give."""
        return self.needed_mib <= self.available_mib


def load_peak_gib(model: Model) -> float:
    """Host memory at the peak of loading, when the weights are sharded at load."""
    return checkpoint_load_peak_gib(model.checkpoint_gb)


def checkpoint_load_peak_gib(checkpoint_gb: float) -> float:
    """Host memory at the peak of loading a checkpoint of that size, in decimal gigabytes.

    Also of a sharded one: its publisher shards as other servers do at load. Its servers read what each rank needs and
    convert nothing, which takes less, but no measurement says how much.
    """
    return checkpoint_gb * _GIB_PER_GB * LOAD_PEAK_FACTOR


def container_memory_gib(model: Model) -> int:
    """The memory limit of a container that loads `model`, in whole GiB, `/dev/shm` included."""
    return math.ceil(load_peak_gib(model) + PROCESS_GIB + SHARED_MEMORY_GIB)


def fit(memory_gib: int, instance: InstanceType) -> Fit:
    """Hold a pod's memory limit against what `instance` has left beside its daemons."""
    return Fit(needed_mib=memory_gib * 1024, available_mib=instance.allocatable_memory_mib - DAEMONS_MIB)


def smallest_type_that_fits(memory_gib: int, families: Iterable[str]) -> InstanceType | None:
    """The type of `families` with the least host memory that takes the pod (the cheaper on a tie), or None."""
    allowed = set(families)
    candidates = [one for one in INSTANCE_TYPES.values() if one.family in allowed and fit(memory_gib, one).fits]
    return min(candidates, key=lambda one: (one.host_memory_gib, one.price_usd_per_hour or math.inf), default=None)
