"""The node group layer: Neuron nodes made here, nodes that others made, and the nodes of the cluster's own add-ons."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from components.dependencies import needed
from components.platform import NodeGroupPlan
from components.roles import node_role
from components.settings.cluster import SystemNodesSettings
from components.settings.node_groups import NodeGroupSettings
from components.tags import stack_tags
from neuron.ami import AMI_TYPE, driver_of
from neuron.instances import CHIP_RESOURCE
from neuron.quota import Purchase
from neuron.user_data import user_data

SYSTEM_AMI_TYPE = "AL2023_x86_64_STANDARD"
SYSTEM_DISK_GIB = 40
# gp3 as it comes: 3000 operations and 125 MiB a second are in its price, and carry up to 750 MiB a second.
DEFAULT_THROUGHPUT_MIB_PER_SECOND = 125
DEFAULT_IOPS = 3000
THROUGHPUT_PER_IOPS_MIB = 0.25
# From the host's metadata service over the pod's network: one hop more.
METADATA_HOPS = 2
# What a launch starts beside the group itself.
TAGGED = ("instance", "volume", "network-interface")
CAPACITY_TYPES: dict[Purchase, str] = {
    "on-demand": "ON_DEMAND",
    "spot": "SPOT",
    "capacity-reservation": "ON_DEMAND",
    "capacity-block": "CAPACITY_BLOCK",
}


class ExistingNodeGroup(pulumi.ComponentResource):
    """Neuron nodes that something else made: registers no resource, states the capacity that policies count with."""

    def __init__(self, settings: NodeGroupSettings, opts: pulumi.ResourceOptions | None = None) -> None:
        """State the node group's instance type and the most nodes that it has."""
        capacity = {"instanceType": settings.instance_type, "nodes": settings.nodes}
        super().__init__("neuron-serving:index:ExistingNodeGroup", settings.name, dict(capacity), opts)
        self.register_outputs(dict(capacity))


@dataclass(frozen=True)
class Placement:
    """Where nodes go: the EKS cluster's name, its Kubernetes minor, the subnets.

    `node_policies` are managed policies for the nodes' role beside those that every node needs.
    """

    cluster_name: pulumi.Input[str]
    kubernetes_version: str
    subnet_ids: Sequence[pulumi.Input[str]]
    node_policies: tuple[str, ...] = ()


class NodeGroup(pulumi.ComponentResource):
    """A managed node group of Neuron nodes. Raw resources, as pulumi-eks knows no Neuron AMI (docs/adr/0012)."""

    def __init__(self, plan: NodeGroupPlan, placement: Placement, opts: pulumi.ResourceOptions | None = None) -> None:
        """Register launch template, role and group; the preview names the AMI release and its driver."""
        super().__init__("neuron-serving:index:NodeGroup", plan.name, {}, opts)
        role, attachments = node_role(plan.name, self, placement.node_policies)
        template = aws.ec2.LaunchTemplate(plan.name, launch_template(plan), opts=pulumi.ResourceOptions(parent=self))
        group = aws.eks.NodeGroup(
            plan.name,
            cluster_name=placement.cluster_name,
            node_role_arn=role.arn,
            subnet_ids=placement.subnet_ids,
            ami_type=AMI_TYPE,
            version=placement.kubernetes_version,
            release_version=plan.release.version,
            capacity_type=CAPACITY_TYPES[plan.create.purchase],
            # A capacity block wants the type in its launch template, and EKS takes it in one place only.
            instance_types=None if plan.create.purchase == "capacity-block" else [plan.instance.name],
            scaling_config={
                "min_size": plan.nodes if plan.create.min_nodes is None else plan.create.min_nodes,
                "max_size": plan.nodes,
                "desired_size": plan.nodes,
            },
            update_config={
                "max_unavailable": plan.create.max_unavailable,
                "update_strategy": plan.create.update_strategy,
            },
            node_repair_config={"enabled": True},
            labels={CHIP_RESOURCE: "present"},
            taints=[{"key": CHIP_RESOURCE, "value": "present", "effect": "NO_SCHEDULE"}],
            launch_template={"id": template.id, "version": template.latest_version.apply(str)},
            tags=stack_tags(plan.name),
            opts=pulumi.ResourceOptions.merge(
                pulumi.ResourceOptions(
                    parent=self,
                    depends_on=attachments,
                    # After creation the size is an autoscaler's, or that of whoever scaled by hand.
                    ignore_changes=["scalingConfig.desiredSize"],
                ),
                needed(opts),
            ),
        )
        driver = driver_of(plan.release) or "not recorded here"
        pulumi.log.info(f"{plan.name}: AMI release {plan.release}, Neuron driver {driver}", self)
        self.register_outputs({"nodeGroupName": group.node_group_name})


class SystemNodeGroup(pulumi.ComponentResource):
    """Nodes without chips, for add-ons and controllers; EKS chooses the AMI release when it makes them."""

    def __init__(
        self,
        name: str,
        settings: SystemNodesSettings,
        placement: Placement,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register launch template, role and group; one node more may start while a node is replaced."""
        super().__init__("neuron-serving:index:SystemNodeGroup", name, {}, opts)
        role, attachments = node_role(name, self, placement.node_policies)
        template = aws.ec2.LaunchTemplate(
            name,
            _node_template(name, SYSTEM_DISK_GIB, DEFAULT_THROUGHPUT_MIB_PER_SECOND),
            opts=pulumi.ResourceOptions(parent=self),
        )
        aws.eks.NodeGroup(
            name,
            cluster_name=placement.cluster_name,
            node_role_arn=role.arn,
            subnet_ids=placement.subnet_ids,
            ami_type=SYSTEM_AMI_TYPE,
            version=placement.kubernetes_version,
            instance_types=[settings.instance_type],
            scaling_config={
                "min_size": settings.nodes,
                "max_size": settings.nodes + 1,
                "desired_size": settings.nodes,
            },
            update_config={"max_unavailable": 1},
            node_repair_config={"enabled": True},
            launch_template={"id": template.id, "version": template.latest_version.apply(str)},
            tags=stack_tags(name),
            opts=pulumi.ResourceOptions.merge(
                pulumi.ResourceOptions(
                    parent=self, depends_on=attachments, ignore_changes=["scalingConfig.desiredSize"]
                ),
                needed(opts),
            ),
        )
        self.register_outputs({})


def launch_template(plan: NodeGroupPlan) -> "aws.ec2.LaunchTemplateArgs":
    """The launch template of Neuron nodes: no AMI id, so that EKS brings the cluster's part of the user data itself."""
    create = plan.create
    template = _node_template(plan.name, create.disk_gib, create.disk_throughput_mib_per_second)
    text = user_data(plan.instance, create.disk_throughput_mib_per_second)
    if text is not None:
        template.user_data = base64.b64encode(text.encode()).decode()
    if create.reservation_id is not None:
        template.capacity_reservation_specification = aws.ec2.LaunchTemplateCapacityReservationSpecificationArgs(
            capacity_reservation_target=aws.ec2.LaunchTemplateCapacityReservationSpecificationCapacityReservationTargetArgs(
                capacity_reservation_id=create.reservation_id
            )
        )
    if create.purchase == "capacity-block":
        template.instance_market_options = aws.ec2.LaunchTemplateInstanceMarketOptionsArgs(market_type="capacity-block")
        template.instance_type = plan.instance.name
    return template


def disk_iops(throughput_mib_per_second: int) -> int:
    """The operations a second that a gp3 volume of that throughput has to be bought with."""
    return max(DEFAULT_IOPS, round(throughput_mib_per_second / THROUGHPUT_PER_IOPS_MIB))


def _node_template(name: str, disk_gib: int, throughput_mib_per_second: int) -> "aws.ec2.LaunchTemplateArgs":
    """What every node has: IMDSv2 alone, an encrypted disk, no key for SSH, and the stack's tags."""
    disk = aws.ec2.LaunchTemplateBlockDeviceMappingEbsArgs(
        volume_type="gp3",
        volume_size=disk_gib,
        throughput=throughput_mib_per_second,
        iops=disk_iops(throughput_mib_per_second),
        encrypted="true",
        delete_on_termination="true",
    )
    return aws.ec2.LaunchTemplateArgs(
        block_device_mappings=[aws.ec2.LaunchTemplateBlockDeviceMappingArgs(device_name="/dev/xvda", ebs=disk)],
        metadata_options=aws.ec2.LaunchTemplateMetadataOptionsArgs(
            http_endpoint="enabled", http_tokens="required", http_put_response_hop_limit=METADATA_HOPS
        ),
        tag_specifications=[
            aws.ec2.LaunchTemplateTagSpecificationArgs(resource_type=kind, tags=stack_tags(name)) for kind in TAGGED
        ],
        update_default_version=True,
        tags=stack_tags(name),
    )
