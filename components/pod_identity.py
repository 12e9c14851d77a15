"""What pods may do on AWS: EKS Pod Identity gives a service account one role, which has all that its pods need."""

from collections.abc import Sequence

import pulumi
import pulumi_aws as aws

from components.roles import pod_role
from components.statements import Statement, policy_document
from components.tags import stack_tags


def grant(
    name: str,
    cluster: pulumi.Input[str],
    namespace: pulumi.Input[str],
    service_account: pulumi.Input[str],
    statements: Sequence[pulumi.Input[Sequence[Statement]]],
    parent: pulumi.Resource,
    needed: pulumi.ResourceOptions,
) -> list[pulumi.Resource]:
    """Let the pods of a service account do this; they have to wait for the result, as they get the role at their start.

    `needed` names, as a dependency, the cluster: its name alone says nothing of when it is there.
    """
    policy = pulumi.Output.all(*statements).apply(
        lambda every: policy_document([one for part in every for one in part])
    )
    role, policies = pod_role(name, parent, policy=policy)
    association = aws.eks.PodIdentityAssociation(
        name,
        cluster_name=cluster,
        namespace=namespace,
        service_account=service_account,
        role_arn=role.arn,
        tags=stack_tags(name),
        opts=pulumi.ResourceOptions.merge(pulumi.ResourceOptions(parent=parent), needed),
    )
    return [*policies, association]
