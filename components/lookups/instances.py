"""What EC2 says of instance types, against the table that everything here counts with."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from components.lookups.aws import Aws
from neuron.instances import INSTANCE_TYPES, InstanceType

if TYPE_CHECKING:
    from mypy_boto3_ec2.literals import InstanceTypeType
    from mypy_boto3_ec2.type_defs import InstanceTypeInfoTypeDef

# EC2 states 524288 MiB of Neuron memory for each Trainium2 chip, which has 96 GiB (read 2026-10).
GENERATION_WITH_WRONG_MEMORY = "v3"


@dataclass(frozen=True)
class Difference:
    """One fact that EC2 states otherwise than neuron.instances."""

    instance_type: str
    fact: str
    recorded: int
    stated: int

    def __str__(self) -> str:
        """One line."""
        return f"{self.instance_type}: EC2 states {self.fact} {self.stated}, neuron.instances has {self.recorded}"


def instance_type_differences(aws: Aws, instance: InstanceType) -> tuple[Difference, ...]:
    """Where EC2 and the table differ; AwsError with the code InvalidInstanceType where EC2 does not know the type.

    Neuron facts are compared where EC2 states them (for trn2u it does not), device memory not for Trainium2.
    """
    stated = _stated(_describe(aws, [instance.name])[0], instance)
    recorded = {
        "vCPUs": instance.vcpus,
        "memory in GiB": instance.host_memory_gib,
        "instance store in GB": instance.nvme_gb,
        "EFA interfaces": instance.efa_interfaces,
        "Neuron chips": instance.chips,
        "cores of all chips": instance.physical_cores,
        "Neuron memory in GiB": instance.device_memory_gib,
    }
    return tuple(
        Difference(instance.name, fact, recorded[fact], value)
        for fact, value in stated.items()
        if value != recorded[fact]
    )


def default_vcpus(aws: Aws, names: Collection[str]) -> dict[str, int]:
    """The default vCPUs of types: from the table, and from EC2 for those that the table lacks."""
    vcpus = {name: INSTANCE_TYPES[name].vcpus for name in names if name in INSTANCE_TYPES}
    unlisted = sorted(set(names) - set(vcpus))
    described = _describe(aws, unlisted) if unlisted else []
    return vcpus | {info["InstanceType"]: info["VCpuInfo"]["DefaultVCpus"] for info in described}


def _describe(aws: Aws, names: Collection[str]) -> "list[InstanceTypeInfoTypeDef]":
    with aws.asking("ec2:DescribeInstanceTypes"):
        answer = aws.ec2.describe_instance_types(InstanceTypes=[cast("InstanceTypeType", name) for name in names])
    return answer["InstanceTypes"]


def _stated(info: "InstanceTypeInfoTypeDef", instance: InstanceType) -> dict[str, int]:
    facts = {
        "vCPUs": info["VCpuInfo"]["DefaultVCpus"],
        "memory in GiB": info["MemoryInfo"]["SizeInMiB"] // 1024,
        "instance store in GB": info.get("InstanceStorageInfo", {}).get("TotalSizeInGB", 0),
        "EFA interfaces": info["NetworkInfo"].get("EfaInfo", {}).get("MaximumEfaInterfaces", 0),
    }
    neuron = info.get("NeuronInfo")
    if neuron is None:
        return facts
    devices = neuron.get("NeuronDevices", [])
    facts["Neuron chips"] = sum(one["Count"] for one in devices)
    facts["cores of all chips"] = sum(one["Count"] * one["CoreInfo"]["Count"] for one in devices)
    if instance.core_generation != GENERATION_WITH_WRONG_MEMORY:
        facts["Neuron memory in GiB"] = neuron.get("TotalNeuronDeviceMemoryInMiB", 0) // 1024
    return facts
