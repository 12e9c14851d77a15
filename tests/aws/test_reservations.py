"""Capacity reservations, over real HTTP: the documents have the form of EC2."""

import pytest

from components.faults import ConfigurationError
from components.lookups.aws import Aws
from components.lookups.reservations import reservation_zone_id
from stand_ins.aws_api import AwsStandIn, ec2_error, ec2_page

RESERVATION = ec2_page(
    "DescribeCapacityReservations",
    "capacityReservationSet",
    [{"instanceType": "trn1.2xlarge", "totalInstanceCount": 2, "availabilityZoneId": "usw2-az4"}],
)


def test_a_reservation_says_its_zone(stand_in: AwsStandIn, aws: Aws) -> None:
    stand_in.reply("DescribeCapacityReservations", RESERVATION)
    assert reservation_zone_id(aws, "path", "cr-0a", "trn1.2xlarge", 2) == "usw2-az4"


@pytest.mark.parametrize(("instance_type", "nodes"), [("trn1.32xlarge", 1), ("trn1.2xlarge", 3)])
def test_a_reservation_of_another_type_or_too_small_is_refused(
    stand_in: AwsStandIn, aws: Aws, instance_type: str, nodes: int
) -> None:
    stand_in.reply("DescribeCapacityReservations", RESERVATION)
    with pytest.raises(ConfigurationError, match=r"found cr-0a, of 2 x trn1\.2xlarge; allowed: a reservation of"):
        reservation_zone_id(aws, "path", "cr-0a", instance_type, nodes)


def test_a_reservation_that_does_not_exist_is_said_so(stand_in: AwsStandIn, aws: Aws) -> None:
    stand_in.reply("DescribeCapacityReservations", ec2_error("InvalidCapacityReservationId.NotFound", "no", 400))
    with pytest.raises(ConfigurationError, match="found cr-0a, which does not exist; "):
        reservation_zone_id(aws, "path", "cr-0a", "trn1.2xlarge", 1)
