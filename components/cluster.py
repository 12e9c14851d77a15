"""The cluster layer: one Kubernetes provider, whoever made the cluster."""

import json
from pathlib import Path
from typing import assert_never

import pulumi
import pulumi_kubernetes as kubernetes

from components.addons import Addons, before_nodes, with_nodes
from components.lookups.clusters import EksCluster
from components.network import ClusterNetwork, Network
from components.nodegroup import Placement, SystemNodeGroup
from components.platform import NodeGroupPlan, Platform
from components.roles import CNI_POLICY
from components.settings.cluster import (
    ClusterSettings,
    CreatedCluster,
    ExistingCluster,
    KubeconfigCluster,
    StackCluster,
)
from neuron.tags import stack_cluster_name

# What a stack with an EKS cluster exports under `cluster`, for stacks of mode `stack`.
KUBECONFIG_OUTPUT = "kubeconfig"
NAME_OUTPUT = "name"


def kubeconfig_path(settings: KubeconfigCluster) -> Path:
    """Where the kubeconfig is: a relative path starts at the project's root, `~` at the user's home."""
    return Path(pulumi.get_root_directory()) / Path(settings.kubeconfig).expanduser()


def eks_kubeconfig(cluster: EksCluster, region: str) -> str:
    """A kubeconfig without a credential: the aws command asks for a token as whoever runs it."""
    command = ["--region", region, "eks", "get-token", "--cluster-name", cluster.name, "--output", "json"]
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": cluster.name,
            "clusters": [
                {
                    "name": cluster.name,
                    "cluster": {
                        "server": cluster.endpoint,
                        "certificate-authority-data": cluster.certificate_authority,
                    },
                }
            ],
            "contexts": [{"name": cluster.name, "context": {"cluster": cluster.name, "user": cluster.name}}],
            "users": [
                {
                    "name": cluster.name,
                    "user": {
                        "exec": {
                            "apiVersion": "client.authentication.k8s.io/v1beta1",
                            "command": "aws",
                            "args": command,
                        }
                    },
                }
            ],
        }
    )


class Cluster(pulumi.ComponentResource):
    """A cluster. `provider` is what the other layers deploy with; `eks_name` is None where any cluster may be meant.

    Where the cluster was deleted behind Pulumi's back, PULUMI_K8S_DELETE_UNREACHABLE=true lets `pulumi refresh` and
    `destroy` drop what was in it from the state. It is not set here: a network that is down would look the same.
    """

    provider: kubernetes.Provider
    eks_name: pulumi.Input[str] | None
    kubeconfig: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        settings: ClusterSettings,
        platform: Platform,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register what the mode calls for; `platform` is what AWS said, where the mode asks it."""
        super().__init__("neuron-serving:index:Cluster", name, {}, opts)
        self.eks_name = None
        self._is_another_stacks = isinstance(settings, StackCluster)
        self._kubernetes_version = platform.kubernetes_version
        self._network: Network | None = None
        self._node_policies: tuple[str, ...] = ()
        context: str | None = None
        match settings:
            case KubeconfigCluster():
                self.kubeconfig = pulumi.Output.from_input(str(kubeconfig_path(settings)))
                context = settings.context
            case StackCluster():
                exported = self._of_stack(settings.stack)
                self.eks_name = exported[NAME_OUTPUT]
                self.kubeconfig = exported[KUBECONFIG_OUTPUT]
            case ExistingCluster():
                self.kubeconfig = self._existing(name, platform)
            case CreatedCluster():
                self.kubeconfig = self._create(name, settings, platform)
            case _:
                assert_never(settings)
        self.provider = kubernetes.Provider(
            name, kubeconfig=self.kubeconfig, context=context, opts=pulumi.ResourceOptions(parent=self)
        )
        self.register_outputs({})

    @property
    def reference(self) -> dict[str, pulumi.Input[str]] | None:
        """What another stack needs to deploy to this cluster, which names no credential.

        None where the cluster is not EKS, or another stack's to export.
        """
        if self.eks_name is None or self._is_another_stacks:
            return None
        return {NAME_OUTPUT: self.eks_name, KUBECONFIG_OUTPUT: self.kubeconfig}

    @property
    def s3_endpoint_id(self) -> pulumi.Output[str] | None:
        """The way to S3 of a VPC made here; None where the VPC is others'."""
        return None if self._network is None else self._network.s3_endpoint_id

    def placement(self, plan: NodeGroupPlan) -> Placement:
        """Where a node group of this cluster goes."""
        return Placement(self.eks_name or "", self._kubernetes_version, self._subnets(plan), self._node_policies)

    def _subnets(self, plan: NodeGroupPlan) -> list[pulumi.Input[str]]:
        if self._network is None:
            return list(plan.subnet_ids)
        private = self._network.private_subnet_ids
        return [private[zone] for zone in plan.zone_ids if zone in private]

    def _of_stack(self, stack: str) -> pulumi.Output[dict[str, str]]:
        reference = pulumi.StackReference(stack, opts=pulumi.ResourceOptions(parent=self))
        return reference.get_output("cluster").apply(lambda exported: _exported_cluster(stack, exported))

    def _existing(self, name: str, platform: Platform) -> pulumi.Output[str]:
        if platform.cluster is None:
            raise ValueError("an existing cluster that was not looked up")
        self.eks_name = platform.cluster.name
        # Whether the cluster's network plugin has a role of its own is not known: nodes carry its policy.
        self._node_policies = (CNI_POLICY,)
        if platform.addons:
            Addons(name, self.eks_name, platform.addons, opts=pulumi.ResourceOptions(parent=self))
        return pulumi.Output.from_input(eks_kubeconfig(platform.cluster, platform.region))

    def _create(self, name: str, settings: CreatedCluster, platform: Platform) -> pulumi.Output[str]:
        # pulumi_eks takes a second to import: only a stack that makes its cluster pays for it.
        from components.control_plane import control_plane

        # Known before the cluster is made, so that previews show where things go.
        self.eks_name = stack_cluster_name(pulumi.get_project(), pulumi.get_stack())
        network = self._cluster_network(name, settings, platform)
        made = control_plane(name, self.eks_name, settings, network, self)
        first = Addons(
            f"{name}-before-nodes",
            self.eks_name,
            before_nodes(platform.addons),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[made]),
        )
        nodes = SystemNodeGroup(
            f"{name}-system",
            settings.system_nodes,
            Placement(self.eks_name, platform.kubernetes_version, network.private_subnet_ids),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[first]),
        )
        Addons(
            f"{name}-with-nodes",
            self.eks_name,
            with_nodes(platform.addons),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[nodes]),
        )
        return made.kubeconfig_json

    def _cluster_network(self, name: str, settings: CreatedCluster, platform: Platform) -> ClusterNetwork:
        if settings.vpc_cidr is None:
            return ClusterNetwork(platform.vpc_id, list(settings.subnet_ids), [])
        self._network = Network(
            name, settings.vpc_cidr, platform.zone_ids, platform.region, opts=pulumi.ResourceOptions(parent=self)
        )
        return ClusterNetwork(
            self._network.vpc_id,
            list(self._network.private_subnet_ids.values()),
            list(self._network.public_subnet_ids.values()),
        )


def _exported_cluster(stack: str, exported: object) -> dict[str, str]:
    if not isinstance(exported, dict) or not {NAME_OUTPUT, KUBECONFIG_OUTPUT} <= exported.keys():
        raise pulumi.RunError(
            f"cluster.stack: found {stack}, which exports no cluster; "
            "allowed: a stack of this program with an EKS cluster, deployed; fix: deploy it, or correct the name"
        )
    return exported
