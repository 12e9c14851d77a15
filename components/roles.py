"""IAM roles: of nodes, and of pods by EKS Pod Identity."""

from collections.abc import Iterable

import pulumi
import pulumi_aws as aws

from components.partition import arn
from components.statements import policy_document
from components.tags import stack_tags

# Policies that AWS manages, by name.
CNI_POLICY = "AmazonEKS_CNI_Policy"
# What a node needs to join, to pull images, and to be reached through Session Manager instead of SSH.
NODE_POLICIES = (
    "AmazonEKSWorkerNodePolicy",
    "AmazonEC2ContainerRegistryPullOnly",
    "AmazonSSMManagedInstanceCore",
)


def node_role(
    name: str, parent: pulumi.Resource, extra_policies: Iterable[str] = ()
) -> "tuple[aws.iam.Role, list[pulumi.Resource]]":
    """A role for nodes, and the attachments that must be there before the first node starts."""
    role = _role(f"{name}-node", "ec2.amazonaws.com", ["sts:AssumeRole"], parent)
    policies = (*NODE_POLICIES, *extra_policies)
    return role, [_attach(f"{name}-{policy}", role, policy, parent) for policy in policies]


def pod_role(
    name: str,
    parent: pulumi.Resource,
    *,
    managed_policy: str | None = None,
    policy: pulumi.Input[str] | None = None,
) -> "tuple[aws.iam.Role, list[pulumi.Resource]]":
    """A role that EKS Pod Identity gives to a service account, and its policies: a managed one, or this document."""
    role = _role(name, "pods.eks.amazonaws.com", ["sts:AssumeRole", "sts:TagSession"], parent)
    policies: list[pulumi.Resource] = []
    if managed_policy is not None:
        policies.append(_attach(name, role, managed_policy, parent))
    if policy is not None:
        child = pulumi.ResourceOptions(parent=parent)
        policies.append(aws.iam.RolePolicy(name, role=role.name, policy=policy, opts=child))
    return role, policies


def _role(name: str, service: str, actions: list[str], parent: pulumi.Resource) -> "aws.iam.Role":
    trust = policy_document([{"Effect": "Allow", "Principal": {"Service": service}, "Action": actions}])
    return aws.iam.Role(
        name, assume_role_policy=trust, tags=stack_tags(name), opts=pulumi.ResourceOptions(parent=parent)
    )


def _attach(
    name: str, role: "aws.iam.Role", managed_policy: str, parent: pulumi.Resource
) -> "aws.iam.RolePolicyAttachment":
    policy_arn = arn(f"iam::aws:policy/{managed_policy}")
    return aws.iam.RolePolicyAttachment(
        name, role=role.name, policy_arn=policy_arn, opts=pulumi.ResourceOptions(parent=parent)
    )
