"""The EC2 instance types with Neuron chips: what EC2 lists, and what is left of them for pods.

Sources: AWS Neuron architecture pages and the Karpenter instance type reference (read 2026-08), prices of
PRICE_BASIS, measured values from docs/measurements.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from neuron.errors import ImpossibleInputError

CoreGeneration = Literal["v2", "v3"]
QuotaFamily = Literal["inf", "trn"]

PRICE_BASIS = "on demand in us-east-1, read 2026-07-20"
# Chips are asked for whole: cores of a chip come with it, and Karpenter counts cores of trn2 wrongly.
CHIP_RESOURCE = "aws.amazon.com/neuron"
CORE_RESOURCE = "aws.amazon.com/neuroncore"
INSTANCE_TYPE_LABEL = "node.kubernetes.io/instance-type"

# Physical cores that the runtime joins into one logical core by default (LNC).
DEFAULT_LOGICAL_CORE_SIZE: Mapping[CoreGeneration, int] = MappingProxyType({"v2": 1, "v3": 2})


@dataclass(frozen=True)
class InstanceType:
    """One EC2 instance type. `max_pods` is the VPC CNI's limit, None where no source gives it.

    `measured_allocatable_memory_mib` was read from a real node; None: Karpenter's pessimistic estimate holds.
    """

    name: str
    vcpus: int
    host_memory_gib: int
    chips: int
    cores_per_chip: int
    core_generation: CoreGeneration
    device_memory_gib: int
    nvme_gb: int = 0
    efa_interfaces: int = 0
    max_pods: int | None = None
    measured_allocatable_memory_mib: int | None = None
    price_usd_per_hour: float | None = None

    @property
    def family(self) -> str:
        """The part of the name before the dot: inf2, trn1, trn1n, trn2."""
        return self.name.partition(".")[0]

    @property
    def quota_family(self) -> QuotaFamily:
        """The bucket of the account's vCPU quota that the type counts against."""
        return "inf" if self.family.startswith("inf") else "trn"

    @property
    def physical_cores(self) -> int:
        """All NeuronCores of the instance."""
        return self.chips * self.cores_per_chip

    @property
    def logical_cores_per_chip(self) -> int:
        """NeuronCores of one chip as the runtime offers them at the default logical core size."""
        return self.cores_per_chip // DEFAULT_LOGICAL_CORE_SIZE[self.core_generation]

    @property
    def allocatable_cpu_millicores(self) -> int:
        """CPU left for pods: EKS keeps 6 % of the first core, 1 % of the second, 0.5 % of the next 2, 0.25 % after."""
        reserved_tenths = 600 + 100 + 50 * 2 + 25 * (self.vcpus - 4)
        return self.vcpus * 1000 - reserved_tenths // 10

    @property
    def allocatable_memory_mib(self) -> int:
        """Memory left for pods: measured on a node where that was done, else as Karpenter computes it.

        Karpenter takes 7.5 % for the hypervisor, 255 MiB + 11 MiB a pod for kubelet and system, 100 MiB for eviction.
        """
        if self.measured_allocatable_memory_mib is not None:
            return self.measured_allocatable_memory_mib
        return int(self.host_memory_gib * 1024 * 0.925) - 255 - 11 * (self.max_pods or _MAX_PODS_CEILING) - 100


# The largest figure of the table: the pessimistic choice for types whose own figure no source gives.
_MAX_PODS_CEILING = 737

_TYPES = (
    InstanceType("inf2.xlarge", 4, 16, 1, 2, "v2", 32, max_pods=58, price_usd_per_hour=0.7582),
    InstanceType("inf2.8xlarge", 32, 128, 1, 2, "v2", 32, max_pods=234, price_usd_per_hour=1.96786),
    InstanceType("inf2.24xlarge", 96, 384, 6, 2, "v2", 192, max_pods=737, price_usd_per_hour=6.49063),
    InstanceType("inf2.48xlarge", 192, 768, 12, 2, "v2", 384, max_pods=737, price_usd_per_hour=12.98127),
    InstanceType(
        "trn1.2xlarge",
        8,
        32,
        1,
        2,
        "v2",
        32,
        nvme_gb=474,
        max_pods=58,
        measured_allocatable_memory_mib=30581,
        price_usd_per_hour=1.34375,
    ),
    InstanceType("trn1.32xlarge", 128, 512, 16, 2, "v2", 512, 7600, 8, max_pods=247, price_usd_per_hour=21.50),
    InstanceType("trn1n.32xlarge", 128, 512, 16, 2, "v2", 512, 7600, 16, max_pods=247, price_usd_per_hour=24.78),
    # No on-demand price of trn2 is published.
    InstanceType("trn2.3xlarge", 12, 128, 1, 8, "v3", 96, 470, 1),
    InstanceType("trn2.48xlarge", 192, 2048, 16, 8, "v3", 1536, 7600, 16),
    InstanceType("trn2u.48xlarge", 192, 2048, 16, 8, "v3", 1536, 7600, 16),
)

INSTANCE_TYPES: Mapping[str, InstanceType] = MappingProxyType({one.name: one for one in _TYPES})
FAMILIES: frozenset[str] = frozenset(one.family for one in _TYPES)


def instance_type(name: str) -> InstanceType:
    """The instance type of that name; ImpossibleInputError, naming the known ones, if there is none."""
    try:
        return INSTANCE_TYPES[name]
    except KeyError:
        known = ", ".join(INSTANCE_TYPES)
        raise ImpossibleInputError(f"found {name!r}; known Neuron instance types: {known}") from None
