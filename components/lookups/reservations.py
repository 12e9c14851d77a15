"""Capacity that was reserved before: where it is, and whether it is what a node group wants."""

from components.faults import ConfigurationError, Fault
from components.lookups.aws import Aws, AwsError

NO_SUCH_RESERVATION = frozenset({"InvalidCapacityReservationId.NotFound", "InvalidCapacityReservationId.Malformed"})


def reservation_zone_id(aws: Aws, path: str, reservation_id: str, instance_type: str, nodes: int) -> str:
    """The id of a reservation's zone; ConfigurationError where it is not there, of another type or too small."""
    try:
        with aws.asking("ec2:DescribeCapacityReservations"):
            found = aws.ec2.describe_capacity_reservations(CapacityReservationIds=[reservation_id])
            reservations = found["CapacityReservations"]
    except AwsError as error:
        if error.code not in NO_SUCH_RESERVATION:
            raise
        reservations = []
    allowed = f"a reservation of {nodes} or more {instance_type} in {aws.region}"
    if not reservations:
        raise ConfigurationError([Fault(path, f"{reservation_id}, which does not exist", allowed, "correct the id")])
    reservation = reservations[0]
    if reservation["InstanceType"] != instance_type or reservation["TotalInstanceCount"] < nodes:
        stated = f"{reservation_id}, of {reservation['TotalInstanceCount']} x {reservation['InstanceType']}"
        raise ConfigurationError([Fault(path, stated, allowed, "change instanceType or nodes, or use another")])
    return reservation["AvailabilityZoneId"]
