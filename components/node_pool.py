"""Neuron nodes that Karpenter makes when pods wait for them: pure builders, and the component that registers them."""

from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from components.nodegroup import METADATA_HOPS, Placement, disk_iops
from components.platform import NodeGroupPlan
from components.tags import stack_tags
from neuron.ami import driver_of
from neuron.instances import CHIP_RESOURCE, INSTANCE_TYPE_LABEL
from neuron.user_data import user_data

# Longer than a rollout takes to put the next pod onto a node that one has left.
EMPTY_NODE_MINUTES = 10
# The S3 CSI driver takes it off a node when it can mount there (its documentation, "Node startup taint").
CSI_DRIVER_TAINT = {"key": "s3.csi.aws.com/agent-not-ready", "value": "NotReady", "effect": "NoExecute"}


class NodePool(pulumi.ComponentResource):
    """A NodePool and its EC2NodeClass."""

    def __init__(
        self,
        plan: NodeGroupPlan,
        placement: Placement,
        instance_profile: pulumi.Input[str],
        *,
        mounts_s3: bool,
        opts: pulumi.ResourceOptions,
    ) -> None:
        """Register both, after what `opts` says they depend on: Karpenter, which brings their kinds."""
        super().__init__("neuron-serving:index:NodePool", plan.name, {}, opts)
        child = pulumi.ResourceOptions(parent=self, provider=opts.provider, depends_on=opts.depends_on)
        node_class = kubernetes.apiextensions.CustomResource(
            f"{plan.name}-class",
            api_version="karpenter.k8s.aws/v1",
            kind="EC2NodeClass",
            metadata={"name": plan.name},
            spec=node_class_spec(plan, placement, instance_profile),
            opts=child,
        )
        kubernetes.apiextensions.CustomResource(
            plan.name,
            api_version="karpenter.sh/v1",
            kind="NodePool",
            metadata={"name": plan.name},
            spec=node_pool_spec(plan, mounts_s3=mounts_s3),
            opts=pulumi.ResourceOptions.merge(child, pulumi.ResourceOptions(depends_on=[node_class])),
        )
        driver = driver_of(plan.release) or "not recorded here"
        pulumi.log.info(f"{plan.name}: AMI release {plan.release}, Neuron driver {driver}", self)
        self.register_outputs({})


def node_pool_spec(plan: NodeGroupPlan, *, mounts_s3: bool) -> dict[str, Any]:
    """The spec of a NodePool of one instance type, limited to the group's nodes.

    A node goes when nothing runs on it any more, and never because it could be filled better or is old: each move costs
    a start. `mounts_s3` keeps pods away until the S3 CSI driver runs.
    """
    instance, purchase = plan.instance, plan.create.purchase
    return {
        "limits": {"cpu": str(plan.nodes * instance.vcpus), CHIP_RESOURCE: str(plan.nodes * instance.chips)},
        "disruption": {
            "consolidationPolicy": "WhenEmpty",
            "consolidateAfter": f"{EMPTY_NODE_MINUTES}m",
            # One at a time: two would be all there is, for most.
            "budgets": [{"nodes": "1"}],
        },
        "template": {
            "metadata": {"labels": {CHIP_RESOURCE: "present"}},
            "spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": plan.name},
                "expireAfter": "Never",
                "requirements": [
                    _requirement(INSTANCE_TYPE_LABEL, instance.name),
                    _requirement("karpenter.sh/capacity-type", purchase),
                ],
                "taints": [{"key": CHIP_RESOURCE, "value": "present", "effect": "NoSchedule"}],
                **({"startupTaints": [CSI_DRIVER_TAINT]} if mounts_s3 else {}),
            },
        },
    }


def node_class_spec(plan: NodeGroupPlan, placement: Placement, instance_profile: pulumi.Input[str]) -> dict[str, Any]:
    """The spec of an EC2NodeClass: the pinned AMI release, whose Neuron image Karpenter picks by the instance type.

    The profile is ours, so that Karpenter needs no right to make roles usable. EKS tags the cluster's security group.
    """
    create = plan.create
    text = user_data(plan.instance, create.disk_throughput_mib_per_second)
    return {
        "amiSelectorTerms": [{"alias": plan.release.alias}],
        "instanceProfile": instance_profile,
        "subnetSelectorTerms": [{"id": subnet} for subnet in placement.subnet_ids],
        "securityGroupSelectorTerms": [{"tags": {"aws:eks:cluster-name": placement.cluster_name}}],
        "metadataOptions": {
            "httpEndpoint": "enabled",
            "httpTokens": "required",
            "httpPutResponseHopLimit": METADATA_HOPS,
        },
        "blockDeviceMappings": [
            {
                "deviceName": "/dev/xvda",
                "ebs": {
                    "volumeType": "gp3",
                    "volumeSize": f"{create.disk_gib}Gi",
                    "throughput": create.disk_throughput_mib_per_second,
                    "iops": disk_iops(create.disk_throughput_mib_per_second),
                    "encrypted": True,
                    "deleteOnTermination": True,
                },
            }
        ],
        "tags": stack_tags(plan.name),
        **({} if text is None else {"userData": text}),
        **({"instanceStorePolicy": "RAID0"} if plan.instance.nvme_gb else {}),
    }


def _requirement(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": [value]}
