"""What plans derive from a stack file's parts together."""

from typing import Any

import pytest

from components.plans import one_more_node, serving_plans
from components.settings import Settings
from neuron.rollout import OneMoreNode
from tests.program.conftest import stack_values


def settings(**changes: Any) -> Settings:
    return Settings.model_validate(stack_values("local") | changes)


def group(name: str, instance_type: str, nodes: int, **create: str) -> dict[str, Any]:
    made = {"name": name, "instanceType": instance_type, "nodes": nodes}
    return made | ({"create": create} if create else {})


@pytest.mark.parametrize(
    ("groups", "quotas", "expected"),
    [
        ([group("one", "inf2.xlarge", 2)], {"inf": 8}, OneMoreNode("inf2.xlarge", 4, free_vcpus=0)),
        ([group("one", "inf2.xlarge", 2)], {"trn": 8}, OneMoreNode("inf2.xlarge", 4)),
        (
            [group("one", "inf2.xlarge", 1), group("two", "inf2.8xlarge", 1), group("three", "trn1.2xlarge", 1)],
            {"inf": 40, "trn": 8},
            OneMoreNode("inf2.xlarge", 4, free_vcpus=4),
        ),
        (
            [group("one", "inf2.xlarge", 1, purchase="spot"), group("two", "inf2.8xlarge", 1)],
            {"inf": 32, "inf-spot": 16},
            OneMoreNode("inf2.xlarge", 4, free_vcpus=12),
        ),
        ([group("one", "trn2.48xlarge", 1, purchase="capacity-block", reservationId="cr-0a")], {"trn": 0}, None),
    ],
    ids=["no quota left", "no quota declared", "shared with another group", "of spot", "reserved"],
)
def test_one_more_node_is_held_against_the_declared_quota_that_the_stacks_nodes_leave(
    groups: list[dict[str, Any]], quotas: dict[str, int], expected: OneMoreNode | None
) -> None:
    assert one_more_node("one", settings(nodeGroups=groups, quotas=quotas)) == expected


def test_the_forecast_of_a_full_pool_names_the_quota() -> None:
    (plan,) = serving_plans(
        settings(nodeGroups=[group("inferentia", "inf2.xlarge", 1)], quotas={"inf": 4}, modelCache=None)
    )
    assert plan.rollout.forecast == (
        "next rollout: surge 0, unavailable 1, about 294 s without a ready endpoint (1 of 1 chips in use: the old pod "
        "must release its chip before the new one starts; one more inf2.xlarge needs 4 of 0 free vCPUs)"
    )
