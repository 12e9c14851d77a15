"""The Karpenter layer: the controller that makes Neuron nodes when pods wait, and what it needs on AWS."""

import json
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws

from components.addresses import KARPENTER_NAMESPACE
from components.charts import install
from components.cluster import Cluster
from components.dependencies import needed
from components.karpenter_rights import controller_statements
from components.node_pool import NodePool
from components.nodegroup import Placement
from components.platform import NodeGroupPlan
from components.pod_identity import grant
from components.roles import node_role
from components.settings.charts import ChartsSettings
from components.statements import allow, deny_without_tls, policy_document
from components.tags import stack_tags

SERVICE_ACCOUNT = "karpenter"
# What it has not read by then is about an instance that is gone.
MESSAGE_RETENTION_SECONDS = 300
# (source, detail type) of the events about instances that will go, or have gone.
EVENTS = {
    "health": ("aws.health", "AWS Health Event"),
    "spot": ("aws.ec2", "EC2 Spot Instance Interruption Warning"),
    "rebalance": ("aws.ec2", "EC2 Instance Rebalance Recommendation"),
    "state": ("aws.ec2", "EC2 Instance State-change Notification"),
}
# One figure for request and limit of memory; it holds the state of the whole cluster.
CONTROLLER_RESOURCES = {"requests": {"cpu": "250m", "memory": "1Gi"}, "limits": {"memory": "1Gi"}}


@dataclass(frozen=True)
class KarpenterPlan:
    """The node groups whose nodes Karpenter makes, in a region; `mounts_s3` says whether their pods mount a bucket."""

    groups: tuple[NodeGroupPlan, ...]
    region: str
    charts: ChartsSettings
    mounts_s3: bool


class Karpenter(pulumi.ComponentResource):
    """The chart, the controller's role, the nodes' role, the queue of interruptions, and the pools."""

    def __init__(self, plan: KarpenterPlan, cluster: Cluster, opts: pulumi.ResourceOptions | None = None) -> None:
        """Register it, after the cluster that `opts` says it depends on: the association needs one to be there."""
        super().__init__("neuron-serving:index:Karpenter", "karpenter", {}, opts)
        after = needed(opts)
        on_aws = pulumi.ResourceOptions.merge(pulumi.ResourceOptions(parent=self), after)
        placement = cluster.placement(plan.groups[0])
        queue = self._queue()
        role, attachments = node_role("karpenter", self, placement.node_policies)
        profile = aws.iam.InstanceProfile(
            "karpenter-node",
            role=role.name,
            tags=stack_tags("karpenter-node"),
            opts=pulumi.ResourceOptions(parent=self),
        )
        # EKS does so by itself for its own groups.
        entry = aws.eks.AccessEntry(
            "karpenter-node",
            cluster_name=placement.cluster_name,
            principal_arn=role.arn,
            type="EC2_LINUX",
            tags=stack_tags("karpenter-node"),
            opts=on_aws,
        )
        rights = self._rights(placement, plan.region, role.arn, queue, after)
        child = pulumi.ResourceOptions(
            parent=self, provider=cluster.provider, depends_on=[*rights, *attachments, entry]
        )
        values = chart_values(placement.cluster_name, queue.name)
        chart = install(
            "karpenter", KARPENTER_NAMESPACE, values, plan.charts, pulumi.ResourceOptions.merge(child, after)
        )
        for group in plan.groups:
            NodePool(
                group,
                cluster.placement(group),
                profile.name,
                mounts_s3=plan.mounts_s3,
                opts=pulumi.ResourceOptions(parent=self, provider=cluster.provider, depends_on=[chart]),
            )
        self.register_outputs({})

    def _queue(self) -> "aws.sqs.Queue":
        """The queue of what AWS announces about instances, so that pods leave before their node does."""
        child = pulumi.ResourceOptions(parent=self)
        queue = aws.sqs.Queue(
            "karpenter",
            message_retention_seconds=MESSAGE_RETENTION_SECONDS,
            sqs_managed_sse_enabled=True,
            tags=stack_tags("karpenter"),
            opts=child,
        )
        aws.sqs.QueuePolicy("karpenter", queue_url=queue.url, policy=queue.arn.apply(queue_policy), opts=child)
        for name, (source, detail_type) in EVENTS.items():
            pattern = json.dumps({"source": [source], "detail-type": [detail_type]})
            rule = aws.cloudwatch.EventRule(
                f"karpenter-{name}", event_pattern=pattern, tags=stack_tags(f"karpenter-{name}"), opts=child
            )
            aws.cloudwatch.EventTarget(f"karpenter-{name}", rule=rule.name, arn=queue.arn, opts=child)
        return queue

    def _rights(
        self,
        placement: Placement,
        region: str,
        node_role_arn: pulumi.Output[str],
        queue: "aws.sqs.Queue",
        after: pulumi.ResourceOptions,
    ) -> list[pulumi.Resource]:
        """The controller's role; a pod gets it when it starts, so it comes before the chart."""
        statements = pulumi.Output.all(placement.cluster_name, node_role_arn, queue.arn).apply(
            lambda known: controller_statements(str(known[0]), region, str(known[1]), str(known[2]))
        )
        cluster = placement.cluster_name
        return grant("karpenter", cluster, KARPENTER_NAMESPACE, SERVICE_ACCOUNT, [statements], self, after)


def queue_policy(queue_arn: str) -> str:
    """Who may write into the queue: AWS's event bus, and nobody without TLS."""
    send = allow("sqs:SendMessage", queue_arn) | {"Principal": {"Service": "events.amazonaws.com"}}
    return policy_document([send, deny_without_tls("sqs", queue_arn)])


def chart_values(cluster_name: pulumi.Input[str], queue: pulumi.Input[str]) -> dict[str, Any]:
    """Values of Karpenter's chart. It keeps off the nodes that it makes, as the chart's own affinity says."""
    return {
        "serviceAccount": {"name": SERVICE_ACCOUNT},
        "settings": {"clusterName": cluster_name, "interruptionQueue": queue},
        "controller": {"resources": CONTROLLER_RESOURCES},
    }
