"""Chips per pod and pods per pool."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuron.instances import INSTANCE_TYPES, InstanceType, instance_type
from neuron.placement import (
    Pool,
    allowed_tensor_parallel,
    chips_per_pod,
    cpu_request_millicores,
    free_slots,
    needs_neighbouring_chips,
)


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("inf2.xlarge", (1, 2)),
        ("inf2.24xlarge", (1, 2, 4, 6, 12)),
        ("trn2.3xlarge", (1, 2, 4)),
        ("trn2.48xlarge", (1, 2, 4, 8, 16, 32, 64)),
    ],
)
def test_tensor_parallel_divides_a_chip_or_uses_whole_chips(name: str, allowed: tuple[int, ...]) -> None:
    assert allowed_tensor_parallel(instance_type(name)) == allowed


@pytest.mark.parametrize(("degree", "chips"), [(1, 1), (2, 1), (4, 2), (12, 6)])
def test_a_pod_asks_for_the_chips_that_hold_its_cores(degree: int, chips: int) -> None:
    assert chips_per_pod(degree, instance_type("inf2.24xlarge")) == chips


def test_a_chip_left_over_on_every_node_holds_no_pod_of_two() -> None:
    pool = Pool(instance_type("inf2.24xlarge"), nodes=2)
    assert free_slots(pool, 4) == 2
    assert free_slots(pool, 4, others=[4]) == 1
    assert free_slots(pool, 2, others=[4, 4]) == 2


def test_pods_that_do_not_fit_are_said_so() -> None:
    assert free_slots(Pool(instance_type("inf2.xlarge"), nodes=1), 1, others=[1, 1]) == -1


@given(st.integers(0, 4), st.lists(st.integers(1, 6), max_size=8))
def test_no_node_is_ever_given_more_chips_than_it_has(nodes: int, others: list[int]) -> None:
    free = free_slots(Pool(instance_type("inf2.24xlarge"), nodes), 1, others)
    assert free == -1 or free == nodes * 6 - sum(others)


@pytest.mark.parametrize("instance", INSTANCE_TYPES.values(), ids=lambda one: one.name)
def test_pods_on_every_chip_leave_cpu_for_the_nodes_daemons(instance: InstanceType) -> None:
    requested = cpu_request_millicores(1, instance) * instance.chips
    assert 0 < requested <= instance.allocatable_cpu_millicores - 400


@pytest.mark.parametrize(("chips", "needs"), [(1, False), (2, True), (8, True), (16, False)])
def test_only_several_chips_of_a_larger_node_must_lie_side_by_side(chips: int, needs: bool) -> None:
    assert needs_neighbouring_chips(chips, instance_type("trn1.32xlarge")) == needs
