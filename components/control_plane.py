"""A control plane made here, by pulumi-eks."""

import pulumi
import pulumi_aws as aws
import pulumi_eks as eks

from components.network import ClusterNetwork
from components.partition import arn
from components.settings.cluster import CreatedCluster
from components.tags import stack_tags

ADMINISTRATOR_POLICY = "eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
LOG_TYPES = ["api", "audit", "authenticator", "controllerManager", "scheduler"]
KEY_DELETION_DAYS = 30


def control_plane(
    name: str, eks_name: str, settings: CreatedCluster, network: ClusterNetwork, parent: pulumi.Resource
) -> eks.Cluster:
    """Register key and cluster.

    Without a node group, add-ons and security groups of pulumi-eks: EKS's own security group joins nodes and control
    plane, and the add-ons come in the order in which nodes need them.
    """
    child = pulumi.ResourceOptions(parent=parent)
    key = aws.kms.Key(
        name,
        description=f"Secrets of the cluster {eks_name}",
        enable_key_rotation=True,
        deletion_window_in_days=KEY_DELETION_DAYS,
        tags=stack_tags(name),
        opts=child,
    )
    public = bool(settings.public_access_cidrs)
    return eks.Cluster(
        name,
        name=eks_name,
        version=settings.version,
        upgrade_policy={"support_type": "STANDARD"},
        authentication_mode=eks.AuthenticationMode.API,
        access_entries=access_entries(settings.administrators),
        vpc_id=network.vpc_id,
        private_subnet_ids=network.private_subnet_ids,
        public_subnet_ids=network.public_subnet_ids or None,
        node_associate_public_ip_address=False,
        endpoint_private_access=True,
        endpoint_public_access=public,
        public_access_cidrs=list(settings.public_access_cidrs) if public else None,
        enabled_cluster_log_types=LOG_TYPES,
        encryption_config_key_arn=key.arn,
        create_oidc_provider=settings.oidc_provider,
        skip_default_node_group=True,
        skip_default_security_groups=True,
        bootstrap_self_managed_addons=False,
        use_default_vpc_cni=True,
        kube_proxy_addon_options={"enabled": False},
        coredns_addon_options={"enabled": False},
        tags=stack_tags(),
        opts=child,
    )


def access_entries(administrators: tuple[str, ...]) -> dict[str, eks.AccessEntryArgs]:
    """Entries of cluster administrators by their ARNs; who deploys is one without an entry here."""
    return {
        principal: eks.AccessEntryArgs(
            principal_arn=principal,
            access_policies={
                "administrator": eks.AccessPolicyAssociationArgs(
                    policy_arn=arn(ADMINISTRATOR_POLICY),
                    access_scope=aws.eks.AccessPolicyAssociationAccessScopeArgs(type="cluster"),
                )
            },
        )
        for principal in administrators
    }
