"""The accelerator layer: what makes the chips of a node known to Kubernetes, watches them and places pods on them."""

from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from components.charts import install
from components.cluster import Cluster
from components.dependencies import needed
from components.plans import AcceleratorPlan
from components.pod_identity import grant
from components.statements import Statement, allow

NAMESPACE = "kube-system"
# Of the chart's node problem detector (Neuron documentation, "Permissions for Neuron Node Problem Detector").
DETECTOR_NAMESPACE = "neuron-healthcheck-system"
DETECTOR_SERVICE_ACCOUNT = "node-problem-detector"
DETECTOR_METRICS = "NeuronHealthCheck"
# The chart gives these three no memory limit, which the policy memory-limits refuses. For its other plugin, the DRA
# driver, it has 256Mi; a kube-scheduler keeps every pod and node of the cluster in memory.
PLUGIN_MEMORY = "256Mi"
EXTENSION_MEMORY = "256Mi"
SCHEDULER_MEMORY = "512Mi"


class Accelerator(pulumi.ComponentResource):
    """The Neuron Helm chart, with the role of the node recovery.

    Pulumi waits until the chart's DaemonSets are rolled out on all nodes, so whoever depends on this layer finds the
    device plugin running. The node advertises its chips seconds later: see docs/adr/0013.
    """

    def __init__(self, plan: AcceleratorPlan, cluster: Cluster, opts: pulumi.ResourceOptions | None = None) -> None:
        """Register the chart, after the nodes that `opts` says it depends on: their plugins are waited for."""
        super().__init__("neuron-serving:index:Accelerator", "accelerator", {}, opts)
        after = needed(opts)
        recovers = plan.settings.node_problem_detector == "recover" and cluster.eks_name is not None
        role = self._recovery_role(cluster.eks_name or "", after) if recovers else []
        detects = plan.settings.node_problem_detector != "none"
        namespace = [self._detector_namespace(cluster.provider)] if detects else []
        child = pulumi.ResourceOptions(parent=self, provider=cluster.provider, depends_on=[*role, *namespace])
        install("neuron", NAMESPACE, chart_values(plan), plan.charts, pulumi.ResourceOptions.merge(child, after))
        self.register_outputs({})

    def _detector_namespace(self, provider: kubernetes.Provider) -> pulumi.Resource:
        """The namespace that the chart expects to be there."""
        return kubernetes.core.v1.Namespace(
            DETECTOR_NAMESPACE,
            metadata={"name": DETECTOR_NAMESPACE},
            opts=pulumi.ResourceOptions(parent=self, provider=provider),
        )

    def _recovery_role(self, eks_name: pulumi.Input[str], after: pulumi.ResourceOptions) -> list[pulumi.Resource]:
        """The role with which broken nodes are replaced; a pod gets it when it starts, so it comes before the chart.

        The association names the cluster by a plain name: that there is one by then, only `after` says.
        """
        allowed = pulumi.Output.from_input(eks_name).apply(recovery_statements)
        return grant(
            "neuron-node-recovery", eks_name, DETECTOR_NAMESPACE, DETECTOR_SERVICE_ACCOUNT, [allowed], self, after
        )


def chart_values(plan: AcceleratorPlan) -> dict[str, Any]:
    """Values of the Neuron Helm chart. Every part is stated, so that a chart's new default changes nothing here."""
    settings = plan.settings
    return {
        "devicePlugin": {"enabled": settings.devices == "device-plugin", "resources": _memory_limit(PLUGIN_MEMORY)},
        "draDriver": {"enabled": settings.devices == "dra"},
        "scheduler": _scheduler(settings.kube_scheduler_image) if plan.scheduler_extension else {"enabled": False},
        "npd": {
            "enabled": settings.node_problem_detector != "none",
            "nodeRecovery": {"enabled": settings.node_problem_detector == "recover"},
        },
    }


def _scheduler(image: str | None) -> dict[str, Any]:
    """The extension, and a second scheduler that asks it; pods name that one (neuron.placement)."""
    repository, _, tag = (image or "").rpartition(":")
    return {
        "enabled": True,
        "resources": _memory_limit(EXTENSION_MEMORY),
        "customScheduler": {
            "enabled": True,
            "image": {"repository": repository, "tag": tag},
            "resources": {"requests": {"cpu": "100m"}} | _memory_limit(SCHEDULER_MEMORY),
        },
        "defaultScheduler": {"enabled": False},
    }


def _memory_limit(memory: str) -> dict[str, Any]:
    return {"limits": {"memory": memory}}


def recovery_statements(eks_name: str) -> list[Statement]:
    """What the node recovery may do: mark instances of this cluster's groups unhealthy, and report."""
    # EKS tags the Auto Scaling groups of managed node groups so.
    of_the_cluster = {"StringEquals": {"aws:ResourceTag/eks:cluster-name": eks_name}}
    its_metrics = {"StringEquals": {"cloudwatch:namespace": DETECTOR_METRICS}}
    return [
        allow(["autoscaling:SetInstanceHealth"], condition=of_the_cluster),
        # Neither action takes a resource to narrow it.
        allow(["autoscaling:DescribeAutoScalingInstances", "ec2:DescribeInstances"]),
        allow(["cloudwatch:PutMetricData"], condition=its_metrics),
    ]
