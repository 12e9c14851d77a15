"""Clusters, over real HTTP: moto makes them, without a control plane."""

import pytest

from components.faults import ConfigurationError
from components.lookups.aws import Aws
from components.lookups.clusters import eks_cluster
from components.lookups.zones import subnets_of_vpc
from stand_ins.aws_api import AwsStandIn, json_reply
from tests.aws.conftest import faults


@pytest.fixture
def cluster(aws: Aws, vpc_id: str) -> Aws:
    """An account with one cluster, in two subnets."""
    subnet_ids = [one.id for one in subnets_of_vpc(aws, vpc_id)][:2]
    aws.eks.create_cluster(
        name="workshop",
        version="1.35",
        roleArn="arn:aws:iam::123456789012:role/cluster",
        resourcesVpcConfig={"subnetIds": subnet_ids},
    )
    return aws


def test_a_cluster_is_found_with_its_version_and_subnets(cluster: Aws) -> None:
    found = eks_cluster(cluster, "cluster.name", "workshop")
    assert (found.name, found.version, len(found.subnet_ids)) == ("workshop", "1.35", 2)
    assert found.endpoint.startswith("https://")
    assert found.certificate_authority


def test_a_cluster_that_does_not_exist_is_named_with_those_that_do(cluster: Aws) -> None:
    with pytest.raises(ConfigurationError) as error:
        eks_cluster(cluster, "cluster.name", "workshp")
    assert faults(error) == (
        "cluster.name: found workshp; allowed: an EKS cluster in us-west-2: workshop; "
        "fix: correct the name or aws:region"
    )


def test_a_cluster_that_is_being_made_or_deleted_is_refused(stand_in: AwsStandIn, aws: Aws) -> None:
    stand_in.reply("/clusters/workshop", json_reply({"cluster": {"name": "workshop", "status": "DELETING"}}))
    with pytest.raises(ConfigurationError, match="found workshop, whose status is DELETING; "):
        eks_cluster(aws, "cluster.name", "workshop")
