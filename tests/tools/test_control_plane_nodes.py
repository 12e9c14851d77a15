"""The simulated nodes against the facts of the domain."""

import pytest

from neuron.instances import INSTANCE_TYPES, instance_type
from neuron.quantity import parse_quantity
from tools.control_plane.nodes import NODE_GROUP_LABEL, NodeGroup, Object, render_nodes


def one_node(type_name: str) -> Object:
    [node] = render_nodes([NodeGroup("workers", instance_type(type_name), 1)])
    return node


@pytest.mark.parametrize("name", INSTANCE_TYPES)
def test_a_node_offers_to_pods_what_the_instance_type_has_left(name: str) -> None:
    instance = instance_type(name)
    allocatable = one_node(name)["status"]["allocatable"]
    assert parse_quantity(allocatable["cpu"]) * 1000 == instance.allocatable_cpu_millicores
    assert parse_quantity(allocatable["memory"]) == instance.allocatable_memory_mib * 1024**2
    assert int(allocatable["aws.amazon.com/neuron"]) == instance.chips


def test_the_measured_node_of_the_workshop_is_reproduced() -> None:
    allocatable = one_node("trn1.2xlarge")["status"]["allocatable"]
    assert allocatable["cpu"] == "7910m"
    assert allocatable["memory"] == "30581Mi"
    assert (allocatable["aws.amazon.com/neuron"], allocatable["aws.amazon.com/neuroncore"]) == ("1", "2")
    assert allocatable["pods"] == "58"


def test_trainium2_advertises_logical_cores() -> None:
    assert one_node("trn2.48xlarge")["status"]["allocatable"]["aws.amazon.com/neuroncore"] == "64"


@pytest.mark.parametrize("name", INSTANCE_TYPES)
def test_no_node_offers_more_than_its_capacity(name: str) -> None:
    status = one_node(name)["status"]
    assert status["capacity"].keys() == status["allocatable"].keys()
    for resource, amount in status["allocatable"].items():
        assert parse_quantity(amount) <= parse_quantity(status["capacity"][resource]), resource


def test_a_node_is_labelled_as_a_managed_node_of_eks() -> None:
    node = one_node("inf2.xlarge")
    labels = node["metadata"]["labels"]
    assert labels["node.kubernetes.io/instance-type"] == "inf2.xlarge"
    assert labels["eks.amazonaws.com/nodegroup"] == "workers"
    assert labels["kubernetes.io/hostname"] == node["metadata"]["name"]
    assert labels["topology.kubernetes.io/zone"].startswith(labels["topology.kubernetes.io/region"])
    assert node["spec"]["providerID"].startswith(f"aws:///{labels['topology.kubernetes.io/zone']}/i-")
    assert node["metadata"]["annotations"] == {"kwok.x-k8s.io/node": "fake"}


def test_the_nodes_of_a_group_are_spread_over_zones() -> None:
    nodes = render_nodes([NodeGroup("workers", instance_type("inf2.xlarge"), 4)])
    zones = [node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes]
    assert zones == ["us-west-2b", "us-west-2d"] * 2


def test_a_node_keeps_its_name_when_other_groups_come_and_go() -> None:
    workers = NodeGroup("workers", instance_type("inf2.xlarge"), 1)
    others = NodeGroup("others", instance_type("trn1.2xlarge"), 3)
    alone = render_nodes([workers])
    together = [
        node for node in render_nodes([others, workers]) if node["metadata"]["labels"][NODE_GROUP_LABEL] == "workers"
    ]
    assert together == alone
    assert len({node["metadata"]["name"] for node in render_nodes([others, workers])}) == 4
