"""Where an instance type can run: the zones that offer it, and the subnets that lie in them.

Zones are compared by their ids: a zone's name differs from account to account.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from components.faults import ConfigurationError, Fault
from components.lookups.aws import Aws, AwsError

if TYPE_CHECKING:
    from mypy_boto3_ec2.literals import LocationTypeType
    from mypy_boto3_ec2.type_defs import FilterTypeDef, RouteTableTypeDef, SubnetTypeDef

# Asked only to say where a type is when it is not here: the regions that offered trn or inf2 types in 2026-10.
NEURON_REGIONS = (
    *("us-east-1", "us-east-2", "us-west-2", "ap-northeast-1", "ap-south-1", "ap-south-2"),
    *("ap-southeast-2", "ap-southeast-4", "eu-central-1", "eu-west-1", "sa-east-1"),
)
# The EKS user guide, "VPC and subnet requirements": these take no interfaces of a control plane.
NOT_FOR_CONTROL_PLANES = frozenset({"use1-az3", "usw1-az2", "cac1-az3"})
EVERYWHERE = frozenset({"0.0.0.0/0", "::/0"})


@dataclass(frozen=True)
class Subnet:
    """A subnet. `public`: its route table leads to an internet gateway. `free_addresses` counts IPv4."""

    id: str
    vpc_id: str
    zone: str
    zone_id: str
    free_addresses: int
    public: bool


def zone_ids_offering(aws: Aws, path: str, instance_type: str) -> frozenset[str]:
    """Ids of the zones that offer a type; ConfigurationError, naming regions that do, if this region has none."""
    zone_ids = _offerings(aws, instance_type, "availability-zone-id")
    if not zone_ids:
        elsewhere = _regions_offering(aws, instance_type)
        fault = Fault(
            path,
            f"{instance_type}, which no zone of {aws.region} offers",
            f"a type that {aws.region} offers, or a region that offers this one: "
            f"{', '.join(elsewhere) or 'none of those that were asked'}",
            "change the type, or aws:region",
        )
        raise ConfigurationError([fault])
    return zone_ids


def zone_ids_for_clusters(aws: Aws) -> tuple[str, ...]:
    """Ids of the region's zones in which an EKS control plane may have its interfaces, sorted."""
    with aws.asking("ec2:DescribeAvailabilityZones"):
        answer = aws.ec2.describe_availability_zones(
            Filters=[
                {"Name": "zone-type", "Values": ["availability-zone"]},
                {"Name": "state", "Values": ["available"]},
            ]
        )
    return tuple(sorted({zone["ZoneId"] for zone in answer["AvailabilityZones"]} - NOT_FOR_CONTROL_PLANES))


def subnets(aws: Aws, path: str, subnet_ids: Sequence[str]) -> tuple[Subnet, ...]:
    """The subnets of these ids, in their order; ConfigurationError naming the ids that do not exist."""
    # By a filter, so that an unknown id is missing from the answer instead of failing the call at the first one.
    found = {one.id: one for one in _subnets(aws, {"Name": "subnet-id", "Values": list(subnet_ids)})}
    missing = [one for one in subnet_ids if one not in found]
    if missing:
        allowed = f"ids of subnets that exist in {aws.region}"
        raise ConfigurationError([Fault(path, ", ".join(missing), allowed, "correct the ids or aws:region")])
    return tuple(found[one] for one in subnet_ids)


def subnets_of_vpc(aws: Aws, vpc_id: str) -> tuple[Subnet, ...]:
    """All subnets of a VPC, by zone id and id; none if there is no such VPC."""
    found = _subnets(aws, {"Name": "vpc-id", "Values": [vpc_id]})
    return tuple(sorted(found, key=lambda one: (one.zone_id, one.id)))


def subnets_in_zones(
    path: str, instance_type: str, candidates: Sequence[Subnet], zone_ids: Iterable[str]
) -> tuple[Subnet, ...]:
    """The private candidates in these zones that have a free address, else the public ones.

    Raises ConfigurationError, listing both sides by zone id, if none is left.
    """
    wanted = frozenset(zone_ids)
    usable = [one for one in candidates if one.zone_id in wanted and one.free_addresses > 0]
    if not usable:
        found = ", ".join(f"{one.id} in {one.zone_id} ({one.free_addresses} free)" for one in candidates)
        fault = Fault(
            path,
            found or "no subnet",
            f"a subnet with free addresses in a zone that offers {instance_type}: {', '.join(sorted(wanted))}",
            "add a subnet in one of these zones",
        )
        raise ConfigurationError([fault])
    return tuple(one for one in usable if not one.public) or tuple(usable)


def _offerings(aws: Aws, instance_type: str, location_type: "LocationTypeType") -> frozenset[str]:
    with aws.asking("ec2:DescribeInstanceTypeOfferings"):
        pages = aws.ec2.get_paginator("describe_instance_type_offerings").paginate(
            LocationType=location_type,
            Filters=[{"Name": "instance-type", "Values": [instance_type]}],
        )
        return frozenset(offering["Location"] for page in pages for offering in page["InstanceTypeOfferings"])


def _regions_offering(aws: Aws, instance_type: str) -> list[str]:
    """A hint, tried once a region: one that does not answer, or is not enabled, is left out."""
    regions = []
    for region in NEURON_REGIONS:
        try:
            if region != aws.region and _offerings(Aws(aws.session, region, 1), instance_type, "region"):
                regions.append(region)
        except AwsError:
            continue
    return regions


def _subnets(aws: Aws, by: "FilterTypeDef") -> list[Subnet]:
    with aws.asking("ec2:DescribeSubnets"):
        pages = aws.ec2.get_paginator("describe_subnets").paginate(Filters=[by])
        found = [subnet for page in pages for subnet in page["Subnets"]]
    if not found:
        return []
    vpc_ids = sorted({subnet["VpcId"] for subnet in found})
    with aws.asking("ec2:DescribeRouteTables"):
        table_pages = aws.ec2.get_paginator("describe_route_tables").paginate(
            Filters=[{"Name": "vpc-id", "Values": vpc_ids}]
        )
        tables = [table for page in table_pages for table in page["RouteTables"]]
    return [_subnet(subnet, tables) for subnet in found]


def _subnet(subnet: "SubnetTypeDef", tables: Sequence["RouteTableTypeDef"]) -> Subnet:
    return Subnet(
        id=subnet["SubnetId"],
        vpc_id=subnet["VpcId"],
        zone=subnet["AvailabilityZone"],
        zone_id=subnet["AvailabilityZoneId"],
        free_addresses=subnet["AvailableIpAddressCount"],
        public=_leads_to_internet_gateway(_route_table(subnet, tables)),
    )


def _route_table(subnet: "SubnetTypeDef", tables: Sequence["RouteTableTypeDef"]) -> "RouteTableTypeDef | None":
    """The subnet's own route table, else the main one of its VPC."""
    for table in tables:
        if any(link.get("SubnetId") == subnet["SubnetId"] for link in table.get("Associations", [])):
            return table
    for table in tables:
        if table.get("VpcId") == subnet["VpcId"] and any(link.get("Main") for link in table.get("Associations", [])):
            return table
    return None


def _leads_to_internet_gateway(table: "RouteTableTypeDef | None") -> bool:
    return any(
        route.get("GatewayId", "").startswith("igw-")
        and EVERYWHERE & {route.get("DestinationCidrBlock"), route.get("DestinationIpv6CidrBlock")}
        for route in (table or {}).get("Routes", [])
    )
