"""The instance table against what was measured and what Karpenter computes for the same types."""

import pytest

from neuron.errors import ImpossibleInputError
from neuron.instances import INSTANCE_TYPES, instance_type


@pytest.mark.parametrize(
    ("name", "cpu_millicores", "memory_mib"),
    [
        # Read from a node (src); memory was 31315416Ki.
        ("trn1.2xlarge", 7910, 31315416 // 1024),
        # Karpenter's instance type reference, 2026-07.
        ("inf2.xlarge", 3920, 14162),
        ("inf2.8xlarge", 31850, 118312),
        ("trn1.32xlarge", 127610, 481894),
    ],
)
def test_allocatable_is_what_nodes_and_karpenter_report(name: str, cpu_millicores: int, memory_mib: int) -> None:
    instance = instance_type(name)
    assert instance.allocatable_cpu_millicores == cpu_millicores
    assert instance.allocatable_memory_mib == memory_mib


def test_trainium2_offers_half_its_physical_cores_at_the_default_logical_core_size() -> None:
    trn2 = instance_type("trn2.48xlarge")
    assert trn2.physical_cores == 128
    assert trn2.logical_cores_per_chip * trn2.chips == 64


def test_families_count_against_the_quota_of_inferentia_or_trainium() -> None:
    assert {one.family: one.quota_family for one in INSTANCE_TYPES.values()} == {
        "inf2": "inf",
        "trn1": "trn",
        "trn1n": "trn",
        "trn2": "trn",
        "trn2u": "trn",
    }


def test_an_unknown_type_names_the_known_ones() -> None:
    with pytest.raises(ImpossibleInputError, match=r"found 'inf3.xlarge'; known .*inf2.xlarge"):
        instance_type("inf3.xlarge")
