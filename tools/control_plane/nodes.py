"""Node objects as EKS managed node groups with Neuron chips have them."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from neuron.instances import CHIP_RESOURCE, CORE_RESOURCE, INSTANCE_TYPE_LABEL, InstanceType

Object: TypeAlias = dict[str, Any]
"""A Kubernetes object as JSON."""

NODE_GROUP_LABEL = "eks.amazonaws.com/nodegroup"
ZONE_LABEL = "topology.kubernetes.io/zone"
REGION = "us-west-2"
# Zones of the region that offer trn1.2xlarge (src), with the account-independent ids.
ZONES = (("us-west-2b", "usw2-az2"), ("us-west-2d", "usw2-az4"))
MAX_NODES_OF_A_GROUP = 200

# A 100 GB root volume, and what the kubelet leaves of it (src).
_ROOT_VOLUME = "100G"
_ALLOCATABLE_ROOT_VOLUME = "95500M"
# The kubelet's default, for types whose limit no source gives.
_DEFAULT_MAX_PODS = 110


@dataclass(frozen=True)
class NodeGroup:
    """`nodes` simulated machines of one instance type."""

    name: str
    instance: InstanceType
    nodes: int


def render_nodes(groups: Iterable[NodeGroup]) -> list[Object]:
    """One Node object for each machine of `groups`; the machines of a group alternate between the zones."""
    return [_node(group, index) for group in groups for index in range(group.nodes)]


def _node(group: NodeGroup, index: int) -> Object:
    address = _address(group, index)
    name = f"ip-{address.replace('.', '-')}.{REGION}.compute.internal"
    zone, zone_id = ZONES[index % len(ZONES)]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {
                INSTANCE_TYPE_LABEL: group.instance.name,
                NODE_GROUP_LABEL: group.name,
                ZONE_LABEL: zone,
                "eks.amazonaws.com/capacityType": "ON_DEMAND",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                # Set by the Neuron device plugin.
                "neuron.amazonaws.com/present": "true",
                "topology.k8s.aws/zone-id": zone_id,
                "topology.kubernetes.io/region": REGION,
            },
        },
        "spec": {"providerID": f"aws:///{zone}/i-{_digest(name)[:17]}"},
        "status": {
            # Loopback, because the API server connects to this address for logs and exec.
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": name}],
            "capacity": _capacity(group.instance),
            "allocatable": _allocatable(group.instance),
            "nodeInfo": _NODE_INFO,
        },
    }


_NODE_INFO = {
    "architecture": "amd64",
    "bootID": "",
    "containerRuntimeVersion": "kwok",
    "kernelVersion": "kwok",
    "kubeProxyVersion": "",
    "kubeletVersion": "kwok",
    "machineID": "",
    "operatingSystem": "linux",
    "osImage": "simulated by kwok",
    "systemUUID": "",
}


def _capacity(instance: InstanceType) -> Object:
    return {
        "cpu": str(instance.vcpus),
        "memory": f"{instance.host_memory_gib}Gi",
        "ephemeral-storage": _ROOT_VOLUME,
        **_pods_and_chips(instance),
    }


def _allocatable(instance: InstanceType) -> Object:
    return {
        "cpu": f"{instance.allocatable_cpu_millicores}m",
        "memory": f"{instance.allocatable_memory_mib}Mi",
        "ephemeral-storage": _ALLOCATABLE_ROOT_VOLUME,
        **_pods_and_chips(instance),
    }


def _pods_and_chips(instance: InstanceType) -> Object:
    return {
        "pods": str(instance.max_pods or _DEFAULT_MAX_PODS),
        CHIP_RESOURCE: str(instance.chips),
        CORE_RESOURCE: str(instance.chips * instance.logical_cores_per_chip),
    }


def _address(group: NodeGroup, index: int) -> str:
    """An address that stays the same when other groups, or the number of nodes, change."""
    second, third = bytes.fromhex(_digest(group.name))[:2]
    return f"10.{second}.{third}.{10 + index}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
