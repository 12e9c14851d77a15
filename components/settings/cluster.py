"""Which cluster: one of four modes."""

from typing import Annotated, Literal

from pydantic import Field

from components.settings.shapes import ByNames, Cidr, KubernetesMinor, PrincipalArn, Section, SubnetId

# The add-on that brings secrets of AWS Secrets Manager; a cluster made here gets it where a server's token is one.
SECRETS_STORE_ADDON = "aws-secrets-store-csi-driver-provider"
# Billed by what it collects.
CLOUDWATCH_ADDON = "amazon-cloudwatch-observability"


class AddonsSettings(ByNames):
    """EKS add-ons: a version such as v1.20.4-eksbuild.2, or `default` for EKS's own choice."""

    vpc_cni: str | None = None
    kube_proxy: str | None = None
    eks_pod_identity_agent: str | None = None
    coredns: str | None = None
    metrics_server: str | None = None
    aws_mountpoint_s3_csi_driver: str | None = None
    aws_secrets_store_csi_driver_provider: str | None = None
    amazon_cloudwatch_observability: str | None = None


class SystemNodesSettings(Section):
    """Nodes without chips, for the add-ons and controllers of a cluster made here."""

    instance_type: str = "m7i.large"
    nodes: int = Field(default=2, ge=1)


class KubeconfigCluster(Section):
    """Any cluster, by a file that its maker wrote; `kubeconfig` is a path, relative to the project."""

    mode: Literal["kubeconfig"]
    kubeconfig: str = Field(min_length=1)
    context: str | None = None


class ExistingCluster(Section):
    """An EKS cluster that others made, by its name in the region `aws:region`.

    Only the add-ons listed in `addons` are installed, by version or `default`.
    """

    mode: Literal["existing"]
    name: str = Field(min_length=1)
    addons: AddonsSettings = AddonsSettings()


class CreatedCluster(Section):
    """An EKS cluster made here, in a VPC made here (`vpcCidr`) or in `subnetIds`.

    `administrators` are IAM principals beside the one that deploys. `addons` pins versions, the others are EKS's
    defaults for the Kubernetes version.
    """

    mode: Literal["create"]
    version: KubernetesMinor
    public_access_cidrs: tuple[Cidr, ...] = Field(strict=False)
    vpc_cidr: Cidr | None = None
    subnet_ids: tuple[SubnetId, ...] = Field(default=(), strict=False)
    administrators: tuple[PrincipalArn, ...] = Field(default=(), strict=False)
    oidc_provider: bool = False
    addons: AddonsSettings = AddonsSettings()
    system_nodes: SystemNodesSettings = SystemNodesSettings()


class StackCluster(Section):
    """The cluster of another stack of this program, which exports its kubeconfig; `stack` as in org/project/stack."""

    mode: Literal["stack"]
    stack: str = Field(min_length=1)


ClusterSettings = Annotated[
    KubeconfigCluster | ExistingCluster | CreatedCluster | StackCluster, Field(discriminator="mode")
]
