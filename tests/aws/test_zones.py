"""Zones and subnets, over real HTTP: moto has the offerings that EC2 stated."""

from dataclasses import replace

import pytest

from components.faults import ConfigurationError
from components.lookups import zones
from components.lookups.aws import Aws
from components.lookups.zones import (
    Subnet,
    subnets,
    subnets_in_zones,
    subnets_of_vpc,
    zone_ids_for_clusters,
    zone_ids_offering,
)
from stand_ins.aws_api import MOTO, AwsStandIn, ec2_error, ec2_page
from tests.aws.conftest import faults


@pytest.fixture
def three_regions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer regions to ask: moto takes its time to make each."""
    monkeypatch.setattr(zones, "NEURON_REGIONS", ("us-east-2", "us-west-2", "ap-south-2"))


def test_zones_that_offer_a_type_are_found_by_their_ids(aws: Aws) -> None:
    assert zone_ids_offering(aws, "nodeGroups[0].instanceType", "trn1.2xlarge") == {"usw2-az1", "usw2-az4"}


@pytest.mark.usefixtures("three_regions")
def test_a_type_that_no_zone_offers_is_named_with_the_regions_that_do(aws: Aws) -> None:
    with pytest.raises(ConfigurationError) as error:
        zone_ids_offering(aws, "nodeGroups[0].instanceType", "trn2.48xlarge")
    assert faults(error) == (
        "nodeGroups[0].instanceType: found trn2.48xlarge, which no zone of us-west-2 offers; allowed: a type that "
        "us-west-2 offers, or a region that offers this one: us-east-2, ap-south-2; fix: change the type, or aws:region"
    )


@pytest.mark.usefixtures("three_regions")
def test_a_region_that_does_not_answer_is_left_out_of_the_hint(stand_in: AwsStandIn, aws: Aws) -> None:
    not_enabled = ec2_error("AuthFailure", "AWS was not able to validate the provided access credentials", 401)
    stand_in.reply("DescribeInstanceTypeOfferings", MOTO, not_enabled, MOTO)
    with pytest.raises(ConfigurationError, match="offers this one: ap-south-2; fix"):
        zone_ids_offering(aws, "nodeGroups[0].instanceType", "trn2.48xlarge")


def test_the_zones_for_clusters_are_known_by_their_ids(aws: Aws) -> None:
    assert zone_ids_for_clusters(aws) == ("usw2-az1", "usw2-az2", "usw2-az3", "usw2-az4")


def test_offerings_on_later_pages_count(stand_in: AwsStandIn, aws: Aws) -> None:
    pages = [
        ec2_page(
            "DescribeInstanceTypeOfferings",
            "instanceTypeOfferingSet",
            [{"instanceType": "trn1.2xlarge", "locationType": "availability-zone-id", "location": zone_id}],
            next_token,
        )
        for zone_id, next_token in [("usw2-az1", "second"), ("usw2-az2", "third"), ("usw2-az4", "")]
    ]
    stand_in.reply("DescribeInstanceTypeOfferings", *pages)
    assert zone_ids_offering(aws, "path", "trn1.2xlarge") == {"usw2-az1", "usw2-az2", "usw2-az4"}
    assert stand_in.calls["DescribeInstanceTypeOfferings"] == 3


def test_subnets_of_a_vpc_have_zone_ids_free_addresses_and_a_way_out(aws: Aws, vpc_id: str) -> None:
    found = subnets_of_vpc(aws, vpc_id)
    zone_ids = {zone["ZoneName"]: zone["ZoneId"] for zone in aws.ec2.describe_availability_zones()["AvailabilityZones"]}
    assert sorted((one.zone, one.public) for one in found) == [
        ("us-west-2a", False),
        ("us-west-2a", True),
        ("us-west-2b", False),
    ]
    assert {one.zone_id for one in found} == {zone_ids["us-west-2a"], zone_ids["us-west-2b"]}
    assert {(one.vpc_id, one.free_addresses) for one in found} == {(vpc_id, 251)}


def test_an_internet_gateway_in_the_main_table_makes_every_other_subnet_public(aws: Aws, vpc_id: str) -> None:
    tables = aws.ec2.describe_route_tables(Filters=[{"Name": "vpc-id", "Values": [vpc_id]}])["RouteTables"]
    (main,) = (one["RouteTableId"] for one in tables if any(link["Main"] for link in one["Associations"]))
    gateway_id = aws.ec2.describe_internet_gateways(Filters=[{"Name": "attachment.vpc-id", "Values": [vpc_id]}])[
        "InternetGateways"
    ][0]["InternetGatewayId"]
    aws.ec2.create_route(RouteTableId=main, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway_id)
    assert all(one.public for one in subnets_of_vpc(aws, vpc_id))


def test_subnets_come_in_the_order_of_their_ids_and_missing_ones_are_named(aws: Aws, vpc_id: str) -> None:
    ids = [one.id for one in reversed(subnets_of_vpc(aws, vpc_id))]
    assert [one.id for one in subnets(aws, "cluster.subnetIds", ids)] == ids
    with pytest.raises(ConfigurationError) as error:
        subnets(aws, "cluster.subnetIds", [ids[0], "subnet-gone", "subnet-typo"])
    assert "cluster.subnetIds: found subnet-gone, subnet-typo; allowed: ids of subnets that exist" in faults(error)


PRIVATE = Subnet("subnet-1", "vpc-1", "us-west-2a", "usw2-az1", 200, public=False)
PUBLIC = replace(PRIVATE, id="subnet-2", public=True)
ELSEWHERE = replace(PRIVATE, id="subnet-3", zone_id="usw2-az2")
FULL = replace(PRIVATE, id="subnet-4", free_addresses=0)


@pytest.mark.parametrize(
    ("candidates", "chosen"),
    [
        ([PUBLIC, PRIVATE, ELSEWHERE, FULL], (PRIVATE,)),
        ([PUBLIC, ELSEWHERE, FULL], (PUBLIC,)),
    ],
)
def test_nodes_go_to_private_subnets_with_room_in_the_right_zones(
    candidates: list[Subnet], chosen: tuple[Subnet, ...]
) -> None:
    assert subnets_in_zones("path", "trn1.2xlarge", candidates, {"usw2-az1", "usw2-az4"}) == chosen


def test_subnets_in_the_wrong_zones_are_shown_beside_the_right_ones() -> None:
    with pytest.raises(ConfigurationError) as error:
        subnets_in_zones("cluster.subnetIds", "trn1.2xlarge", [ELSEWHERE, FULL], {"usw2-az4", "usw2-az1"})
    assert faults(error) == (
        "cluster.subnetIds: found subnet-3 in usw2-az2 (200 free), subnet-4 in usw2-az1 (0 free); allowed: a subnet "
        "with free addresses in a zone that offers trn1.2xlarge: usw2-az1, usw2-az4; "
        "fix: add a subnet in one of these zones"
    )
