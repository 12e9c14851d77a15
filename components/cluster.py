"""The cluster layer: one Kubernetes provider, whoever made the cluster."""

from pathlib import Path

import pulumi
import pulumi_kubernetes as kubernetes

from components.settings import KubeconfigCluster


def kubeconfig_path(settings: KubeconfigCluster) -> Path:
    """Where the kubeconfig is: a relative path starts at the project's root, `~` at the user's home."""
    return Path(pulumi.get_root_directory()) / Path(settings.kubeconfig).expanduser()


class Cluster(pulumi.ComponentResource):
    """A cluster that exists, reached by its kubeconfig file. `provider` is what the other layers deploy with."""

    provider: kubernetes.Provider

    def __init__(self, name: str, settings: KubeconfigCluster, opts: pulumi.ResourceOptions | None = None) -> None:
        """Register the provider."""
        super().__init__("neuron-serving:index:Cluster", name, {}, opts)
        self.provider = kubernetes.Provider(
            name,
            kubeconfig=str(kubeconfig_path(settings)),
            context=settings.context,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})
