"""The AWS Load Balancer Controller: it makes the Network Load Balancers that Services ask for."""

from typing import Any

import pulumi

from components.charts import install_release
from components.cluster import Cluster
from components.dependencies import needed
from components.partition import arn
from components.pod_identity import grant
from components.settings.charts import ChartsSettings
from components.statements import Statement, allow
from neuron.tags import LOAD_BALANCER_CLUSTER_TAG

NAMESPACE = "kube-system"
CHART = "load-balancer-controller"
SERVICE_ACCOUNT = "aws-load-balancer-controller"
# The controller marks with it all that it makes, for the cluster that it makes it for.
_CLUSTER_TAG = LOAD_BALANCER_CLUSTER_TAG
_CREATE_ACTIONS = ["CreateLoadBalancer", "CreateTargetGroup", "CreateListener"]


class LoadBalancerController(pulumi.ComponentResource):
    """The controller's chart and role. Services with its load balancers depend on this layer, so they go before it."""

    def __init__(
        self,
        eks_name: pulumi.Input[str],
        cluster: Cluster,
        charts: ChartsSettings,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register both; a pod gets its role when it starts, so the role comes first."""
        super().__init__("neuron-serving:index:LoadBalancerController", "load-balancer-controller", {}, opts)
        after = needed(opts)
        child = pulumi.ResourceOptions.merge(pulumi.ResourceOptions(parent=self), after)
        allowed = pulumi.Output.from_input(eks_name).apply(statements)
        granted = grant("load-balancer-controller", eks_name, NAMESPACE, SERVICE_ACCOUNT, [allowed], self, after)
        deployed = pulumi.ResourceOptions(provider=cluster.provider, depends_on=granted)
        install_release(CHART, NAMESPACE, chart_values(eks_name), charts, pulumi.ResourceOptions.merge(child, deployed))
        self.register_outputs({})


def chart_values(eks_name: pulumi.Input[str]) -> dict[str, Any]:
    """Values of the controller's chart: Network Load Balancers alone, and only for Services that name its class."""
    return {
        "clusterName": eks_name,
        "serviceAccount": {"create": True, "name": SERVICE_ACCOUNT},
        # Whoever means another controller's load balancer must not get one of this.
        "enableServiceMutatorWebhook": False,
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "256Mi"}},
        "createIngressClassResource": False,
        "enableShield": False,
        "enableWaf": False,
        "enableWafv2": False,
    }


def statements(eks_name: str) -> list[Statement]:
    """What the controller may do: read all, and change what carries the cluster's tag.

    After the controller's own policy, which also allows Application Load Balancers and every cluster's objects.
    https://kubernetes-sigs.github.io/aws-load-balancer-controller/latest/deploy/installation/
    """
    security_groups = arn("ec2:*:*:security-group/*")
    load_balancers = arn("elasticloadbalancing:*:*:loadbalancer/net/*/*")
    listeners = arn("elasticloadbalancing:*:*:listener/net/*/*/*")
    target_groups = arn("elasticloadbalancing:*:*:targetgroup/*/*")
    requested = _tagged("aws:RequestTag", eks_name)
    ours = _tagged("aws:ResourceTag", eks_name)
    creates = {"ec2:CreateAction": "CreateSecurityGroup", f"aws:RequestTag/{_CLUSTER_TAG}": eks_name}
    return [
        allow(["ec2:Describe*", "ec2:GetSecurityGroupsForVpc", "elasticloadbalancing:Describe*"]),
        allow(["acm:DescribeCertificate", "acm:ListCertificates"]),
        allow(
            ["iam:CreateServiceLinkedRole"],
            condition={"StringEquals": {"iam:AWSServiceName": "elasticloadbalancing.amazonaws.com"}},
        ),
        # Creating one needs the right on the VPC too; rules also go into the nodes' group, which others tagged.
        allow(
            ["ec2:CreateSecurityGroup", "ec2:AuthorizeSecurityGroupIngress", "ec2:RevokeSecurityGroupIngress"],
        ),
        allow(["ec2:CreateTags"], security_groups, {"StringEquals": creates}),
        allow(["ec2:CreateTags", "ec2:DeleteTags", "ec2:DeleteSecurityGroup"], security_groups, ours),
        allow(["elasticloadbalancing:CreateLoadBalancer", "elasticloadbalancing:CreateTargetGroup"], "*", requested),
        allow(
            ["elasticloadbalancing:AddTags"],
            [load_balancers, target_groups, listeners],
            {"StringEquals": {"elasticloadbalancing:CreateAction": _CREATE_ACTIONS}},
        ),
        allow(
            ["elasticloadbalancing:AddTags", "elasticloadbalancing:RemoveTags"],
            [load_balancers, target_groups, listeners],
            ours,
        ),
        allow(
            [
                "elasticloadbalancing:DeleteLoadBalancer",
                "elasticloadbalancing:DeleteTargetGroup",
                "elasticloadbalancing:ModifyLoadBalancerAttributes",
                "elasticloadbalancing:ModifyTargetGroup",
                "elasticloadbalancing:ModifyTargetGroupAttributes",
                "elasticloadbalancing:RegisterTargets",
                "elasticloadbalancing:DeregisterTargets",
                "elasticloadbalancing:SetIpAddressType",
                "elasticloadbalancing:SetSecurityGroups",
                "elasticloadbalancing:SetSubnets",
            ],
            [load_balancers, target_groups],
            ours,
        ),
        allow(
            [
                "elasticloadbalancing:AddListenerCertificates",
                "elasticloadbalancing:CreateListener",
                "elasticloadbalancing:DeleteListener",
                "elasticloadbalancing:ModifyListener",
                "elasticloadbalancing:ModifyListenerAttributes",
                "elasticloadbalancing:RemoveListenerCertificates",
            ],
            [load_balancers, listeners],
        ),
    ]


def _tagged(key: str, eks_name: str) -> dict[str, object]:
    return {"StringEquals": {f"{key}/{_CLUSTER_TAG}": eks_name}}
