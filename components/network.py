"""The network layer: a VPC for a cluster made here."""

from dataclasses import dataclass
from ipaddress import IPv4Network

import pulumi
import pulumi_aws as aws

from components.tags import stack_tags

# The EKS user guide, "VPC and subnet requirements": load balancers look for subnets by these tags.
PRIVATE_TAG = {"kubernetes.io/role/internal-elb": "1"}
PUBLIC_TAG = {"kubernetes.io/role/elb": "1"}
EVERYWHERE = "0.0.0.0/0"
# The network in eighths: one for the private subnet of each zone, the last for all the public subnets together.
_PARTS = 3
MAXIMUM_ZONES = 2**_PARTS - 1


@dataclass(frozen=True)
class SubnetCidrs:
    """The networks of one zone's two subnets."""

    private: str
    public: str


@dataclass(frozen=True)
class ClusterNetwork:
    """Where a control plane has its interfaces; `public_subnet_ids` only for load balancers."""

    vpc_id: pulumi.Input[str] | None
    private_subnet_ids: list[pulumi.Input[str]]
    public_subnet_ids: list[pulumi.Input[str]]


def subnet_cidrs(cidr: str, zones: int) -> tuple[SubnetCidrs, ...]:
    """Networks for up to seven zones. A zone's place decides, so that adding a zone moves no other."""
    if zones > MAXIMUM_ZONES:
        raise ValueError(f"{zones} zones; a VPC made here has room for {MAXIMUM_ZONES}")
    *private, rest = IPv4Network(cidr).subnets(_PARTS)
    public = rest.subnets(_PARTS)
    return tuple(SubnetCidrs(str(one), str(other)) for one, other in list(zip(private, public, strict=False))[:zones])


class Network(pulumi.ComponentResource):
    """A VPC with a private and a public subnet in each zone, one NAT gateway, and a way to S3 that costs nothing.

    Nodes are in the private subnets. One NAT gateway for all zones: without its zone no new image or model is pulled,
    what runs keeps running.
    """

    vpc_id: pulumi.Output[str]
    private_subnet_ids: dict[str, pulumi.Output[str]]
    public_subnet_ids: dict[str, pulumi.Output[str]]
    s3_endpoint_id: pulumi.Output[str]

    def __init__(
        self, name: str, cidr: str, zone_ids: tuple[str, ...], region: str, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """Register the VPC; subnet ids are by zone id."""
        super().__init__("neuron-serving:index:Network", name, {}, opts)
        self._child = pulumi.ResourceOptions(parent=self)
        vpc = aws.ec2.Vpc(
            name,
            cidr_block=cidr,
            enable_dns_hostnames=True,
            enable_dns_support=True,
            tags=stack_tags(name),
            opts=self._child,
        )
        self.vpc_id = vpc.id
        gateway = aws.ec2.InternetGateway(name, vpc_id=vpc.id, tags=stack_tags(name), opts=self._child)
        public_way_out = self._way_out(f"{name}-public", gateway_id=gateway.id)
        cidrs = dict(zip(zone_ids, subnet_cidrs(cidr, len(zone_ids)), strict=True))
        self.public_subnet_ids = {
            zone: self._subnet(f"{name}-public-{zone}", zone, one.public, PUBLIC_TAG, public_way_out)
            for zone, one in cidrs.items()
        }
        address = aws.ec2.Eip(name, domain="vpc", tags=stack_tags(name), opts=self._child)
        nat = aws.ec2.NatGateway(
            name,
            allocation_id=address.id,
            subnet_id=self.public_subnet_ids[zone_ids[0]],
            tags=stack_tags(name),
            # EC2 makes a NAT gateway only where the way to the internet is open.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[gateway]),
        )
        private_way_out = self._way_out(f"{name}-private", nat_gateway_id=nat.id)
        self.private_subnet_ids = {
            zone: self._subnet(f"{name}-private-{zone}", zone, one.private, PRIVATE_TAG, private_way_out)
            for zone, one in cidrs.items()
        }
        # Models come from S3: through the NAT gateway every gigabyte would be paid for.
        endpoint = aws.ec2.VpcEndpoint(
            f"{name}-s3",
            vpc_id=vpc.id,
            service_name=f"com.amazonaws.{region}.s3",
            vpc_endpoint_type="Gateway",
            route_table_ids=[private_way_out.route_table_id],
            tags=stack_tags(f"{name}-s3"),
            opts=self._child,
        )
        self.s3_endpoint_id = endpoint.id
        self.register_outputs({"vpcId": self.vpc_id})

    def _way_out(
        self,
        name: str,
        gateway_id: pulumi.Input[str] | None = None,
        nat_gateway_id: pulumi.Input[str] | None = None,
    ) -> "aws.ec2.Route":
        """A route table with its way out, which knows its table's id."""
        table = aws.ec2.RouteTable(name, vpc_id=self.vpc_id, tags=stack_tags(name), opts=self._child)
        return aws.ec2.Route(
            name,
            route_table_id=table.id,
            destination_cidr_block=EVERYWHERE,
            gateway_id=gateway_id,
            nat_gateway_id=nat_gateway_id,
            opts=self._child,
        )

    def _subnet(
        self, name: str, zone_id: str, cidr: str, role: dict[str, str], way_out: "aws.ec2.Route"
    ) -> pulumi.Output[str]:
        subnet = aws.ec2.Subnet(
            name,
            vpc_id=self.vpc_id,
            availability_zone_id=zone_id,
            cidr_block=cidr,
            tags=stack_tags(name) | role,
            opts=self._child,
        )
        association = aws.ec2.RouteTableAssociation(
            name, subnet_id=subnet.id, route_table_id=way_out.route_table_id, opts=self._child
        )
        # What is in the subnet starts after it has a way out, and is gone before that goes.
        return pulumi.Output.all(subnet.id, association.id, way_out.id).apply(lambda ids: str(ids[0]))
