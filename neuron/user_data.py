"""User data of a Neuron node: what nodeadm, the bootstrapper of EKS's Amazon Linux 2023, is told beside EKS's own part.

Source: the nodeadm API reference and examples of awslabs/amazon-eks-ami, release v20260714.
"""

import yaml

from neuron.instances import InstanceType

# nodeadm ignores FastImagePull on smaller instances.
FAST_IMAGE_PULL_MINIMUM_VCPUS = 4
FAST_IMAGE_PULL_MINIMUM_MEMORY_GIB = 7
# Its documentation warns that pulls get slower on a root volume below this.
FAST_IMAGE_PULL_MINIMUM_THROUGHPUT_MIB_PER_SECOND = 600

# Any text that no line of the document begins with; a constant, so that the same node gives the same launch template.
_BOUNDARY = "neuron-serving-node-config"


def user_data(instance: InstanceType, root_volume_throughput_mib_per_second: int) -> str | None:
    """The user data of a launch template without an AMI id, not yet in base64; None if nodeadm's defaults are right.

    A managed node group merges this MIME multi-part document with EKS's own part, which brings the cluster.
    """
    spec = _node_config_spec(instance, root_volume_throughput_mib_per_second)
    if not spec:
        return None
    node_config = {"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": spec}
    return "\n".join(
        [
            "MIME-Version: 1.0",
            f'Content-Type: multipart/mixed; boundary="{_BOUNDARY}"',
            "",
            f"--{_BOUNDARY}",
            "Content-Type: application/node.eks.aws",
            "",
            yaml.safe_dump(node_config, explicit_start=True).rstrip(),
            "",
            f"--{_BOUNDARY}--",
            "",
        ]
    )


def _node_config_spec(instance: InstanceType, throughput_mib_per_second: int) -> dict[str, object]:
    spec: dict[str, object] = {}
    if instance.nvme_gb:
        # Puts the state of kubelet, containerd and the SOCI snapshotter on the instance store.
        spec["instance"] = {"localStorage": {"strategy": "RAID0"}}
    if _pulls_images_fast(instance, throughput_mib_per_second):
        spec["featureGates"] = {"FastImagePull": True}
    return spec


def _pulls_images_fast(instance: InstanceType, throughput_mib_per_second: int) -> bool:
    """Whether unpacking layers in parallel helps: enough CPU and memory, and a disk that keeps up."""
    large_enough = (
        instance.vcpus >= FAST_IMAGE_PULL_MINIMUM_VCPUS
        and instance.host_memory_gib >= FAST_IMAGE_PULL_MINIMUM_MEMORY_GIB
    )
    enough_throughput = throughput_mib_per_second >= FAST_IMAGE_PULL_MINIMUM_THROUGHPUT_MIB_PER_SECOND
    return large_enough and (instance.nvme_gb > 0 or enough_throughput)
