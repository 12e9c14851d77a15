"""EKS add-ons, at versions that are decided before anything is made."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from components.dependencies import needed
from components.roles import CNI_POLICY, pod_role
from components.tags import stack_tags


@dataclass(frozen=True)
class Addon:
    """What an add-on needs: nodes to run on before it counts as installed, a managed policy for its service account.

    `configuration` is what differs from the add-on's own settings.
    """

    needs_nodes: bool
    service_account: str | None = None
    managed_policy: str | None = None
    configuration: Mapping[str, object] | None = None


# A driver and its AWS provider, both of which must run where servers do.
_ON_EVERY_NODE = [{"operator": "Exists"}]


# In the order in which a cluster wants them. The first three make nodes ready: they come before the first node does.
ADDONS: Mapping[str, Addon] = {
    "eks-pod-identity-agent": Addon(needs_nodes=False),
    "vpc-cni": Addon(
        needs_nodes=False,
        service_account="aws-node",
        managed_policy=CNI_POLICY,
        # Without it NetworkPolicies are kept, and nothing enforces them.
        configuration={"enableNetworkPolicy": "true"},
    ),
    "kube-proxy": Addon(needs_nodes=False),
    "coredns": Addon(needs_nodes=True),
    "metrics-server": Addon(needs_nodes=True),
    # Without a role: pods mount with their own (components/model_cache.py).
    "aws-mountpoint-s3-csi-driver": Addon(needs_nodes=True),
    "aws-secrets-store-csi-driver-provider": Addon(
        needs_nodes=True,
        configuration={
            "tolerations": _ON_EVERY_NODE,
            "secrets-store-csi-driver": {"tolerations": _ON_EVERY_NODE},
        },
    ),
    "amazon-cloudwatch-observability": Addon(
        needs_nodes=True, service_account="cloudwatch-agent", managed_policy="CloudWatchAgentServerPolicy"
    ),
}


class Addons(pulumi.ComponentResource):
    """Add-ons of a cluster, some of ADDONS: `versions` maps their names to versions."""

    def __init__(
        self,
        name: str,
        cluster_name: pulumi.Input[str],
        versions: Mapping[str, str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register the add-ons, each with the role of its service account where it has one."""
        super().__init__("neuron-serving:index:Addons", name, {}, opts)
        for addon, version in versions.items():
            associations, policies = self._identity(addon)
            configuration = ADDONS[addon].configuration
            aws.eks.Addon(
                addon,
                cluster_name=cluster_name,
                addon_name=addon,
                addon_version=version,
                configuration_values=json.dumps(configuration) if configuration else None,
                pod_identity_associations=associations,
                resolve_conflicts_on_create="OVERWRITE",
                # What somebody set by hand survives a version change.
                resolve_conflicts_on_update="PRESERVE",
                tags=stack_tags(addon),
                opts=pulumi.ResourceOptions.merge(
                    pulumi.ResourceOptions(parent=self, depends_on=policies), needed(opts)
                ),
            )
        self.register_outputs({})

    def _identity(
        self, addon: str
    ) -> "tuple[list[aws.eks.AddonPodIdentityAssociationArgsDict] | None, list[pulumi.Resource]]":
        known = ADDONS[addon]
        if known.service_account is None:
            return None, []
        role, policies = pod_role(addon, self, managed_policy=known.managed_policy)
        return [{"role_arn": role.arn, "service_account": known.service_account}], policies


def before_nodes(versions: Mapping[str, str]) -> dict[str, str]:
    """Those of the add-ons that must be there before the first node."""
    return {name: version for name, version in versions.items() if not ADDONS[name].needs_nodes}


def with_nodes(versions: Mapping[str, str]) -> dict[str, str]:
    """Those of the add-ons that need nodes."""
    return {name: version for name, version in versions.items() if ADDONS[name].needs_nodes}
