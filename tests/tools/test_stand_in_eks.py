"""What the stand-in for Pulumi's eks plugin refuses. What it makes is in tests/engine/test_stand_ins.py."""

from typing import Any

import pulumi
import pytest

from stand_ins.eks.cluster import INPUTS
from stand_ins.eks.provider import NAME, EksProvider

# The SDK marks old types when it is imported.
pytestmark = pytest.mark.filterwarnings("ignore:NodeGroup uses AWS EC2 LaunchConfiguration:DeprecationWarning")

CLUSTER = {"vpcId": "vpc-1", "subnetIds": ["subnet-1"], "skipDefaultNodeGroup": True}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"fargate": True}, "fargate is not an input that the stand-in has"),
        ({"vpcId": None}, "vpcId is missing"),
        ({"subnetIds": None}, "subnetIds is missing"),
        ({"skipDefaultNodeGroup": None}, "skipDefaultNodeGroup has to be true"),
    ],
)
def test_a_cluster_that_it_does_not_make_is_refused(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(pulumi.InputPropertyError) as raised:
        EksProvider().construct("serving", "eks:index:Cluster", {**CLUSTER, **change})
    assert raised.value.reason.startswith(f"{NAME}: {reason}")


def test_other_components_are_refused() -> None:
    with pytest.raises(pulumi.InputPropertyError) as raised:
        EksProvider().construct("nodes", "eks:index:ManagedNodeGroup", {})
    assert "not eks:index:ManagedNodeGroup" in raised.value.reason


def test_its_inputs_are_the_sdk_s() -> None:
    from pulumi import _types
    from pulumi_eks import ClusterArgs

    assert set(_types.input_type_types(ClusterArgs)) >= INPUTS
