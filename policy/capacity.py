"""The Neuron capacity that a stack may use at its largest, as the vCPU quota counts it."""

from collections.abc import Iterator
from dataclasses import dataclass

from neuron.errors import ImpossibleInputError
from neuron.instances import INSTANCE_TYPES, InstanceType
from neuron.quantity import parse_quantity
from neuron.quota import Bucket, NodeGroupCapacity, NodePoolCapacity, Purchase, QuotaPurchase, Update
from policy.accelerator_pools import accelerator_pools
from policy.manifests import Manifest
from policy.node_pools import instance_type_names, karpenter_types, nodes_within
from policy.resources import Resource, Stack
from policy.values import Node

_MANAGED_TYPES = frozenset({"aws:eks/nodeGroup:NodeGroup", "aws-native:eks:Nodegroup"})
_SELF_MANAGED_TYPES = frozenset({"eks:index:NodeGroup", "eks:index:NodeGroupV2"})
# pulumi-eks: https://www.pulumi.com/registry/packages/eks/api-docs/nodegroupv2/
_SELF_MANAGED_DEFAULT_MAXIMUM = 2
# Nodes that are replaced by others, or not at all, start no further node.
_NO_SURGE = Update(strategy="MINIMAL")

_CAPACITY_TYPE_LABELS = ("karpenter.sh/capacity-type", "eks.amazonaws.com/capacity-type")
_QUOTA_PURCHASES: tuple[QuotaPurchase, ...] = ("on-demand", "spot")


@dataclass(frozen=True)
class Capacity:
    """What node groups and Karpenter pools of a stack may come to; what is not known yet is left out, and noted."""

    groups: tuple[NodeGroupCapacity, ...]
    pools: tuple[NodePoolCapacity, ...]


def capacity(stack: Stack) -> Capacity:
    """The Neuron capacity of the stack."""
    groups = [group for resource in stack.resources for group in _groups(resource)]
    pools = [_pool(manifest) for resource in stack.resources for manifest in accelerator_pools(resource)]
    return Capacity(tuple(groups), tuple(pool for pool in pools if pool is not None))


def _groups(resource: Resource) -> Iterator[NodeGroupCapacity]:
    # Not among them: a ManagedNodeGroup of pulumi-eks, whose child, an EKS node group, is; and an ExistingNodeGroup,
    # whose nodes this stack does not start: they are use by others.
    props, is_managed = resource.props, resource.type in _MANAGED_TYPES
    if not is_managed and resource.type not in _SELF_MANAGED_TYPES:
        return
    names = instance_type_names(resource) if is_managed else [props.at("instanceType")]
    # The group may take any of its types: the largest is the one to reckon with.
    instance = max(_known_types(names), key=lambda one: one.vcpus, default=None)
    # What is not known yet of nodes without accelerators is nothing that was not judged.
    if instance is None:
        return
    if is_managed:
        nodes = props.at("scalingConfig", "maxSize").integer()
        update, purchase = _update(props.at("updateConfig")), _purchase(resource)
    else:
        maximum = props.at("maxSize")
        nodes = _SELF_MANAGED_DEFAULT_MAXIMUM if maximum.is_absent() else maximum.integer()
        update, purchase = _NO_SURGE, "spot" if props.at("spotPrice").is_present() else "on-demand"
    if nodes is not None:
        yield NodeGroupCapacity(resource.name, instance, nodes, purchase, update)


def _known_types(names: list[Node]) -> Iterator[InstanceType]:
    for node in names:
        instance = INSTANCE_TYPES.get(node.text() or "")
        if instance is not None:
            yield instance


def _update(config: Node) -> Update:
    return Update(
        config.at("maxUnavailable").integer(),
        config.at("maxUnavailablePercentage").integer(),
        "MINIMAL" if config.at("updateStrategy").text() == "MINIMAL" else "DEFAULT",
    )


def _purchase(group: Resource) -> Purchase:
    stated = (group.props.at("capacityType").text() or "").upper()
    if stated in ("SPOT", "CAPACITY_BLOCK"):
        return "spot" if stated == "SPOT" else "capacity-block"
    templates = group.dependencies.get("launchTemplate", ())
    specifications = [one.props.at("capacityReservationSpecification") for one in templates]
    reserved = any(one.at("capacityReservationTarget").is_present() for one in specifications)
    return "capacity-reservation" if reserved else "on-demand"


def _pool(manifest: Manifest) -> NodePoolCapacity | None:
    """A Karpenter pool with a limit; without one there is no number to count with (nodepool-limits says so)."""
    limits = manifest.node.at("spec", "limits")
    requirements = list(manifest.node.at("spec", "template", "spec", "requirements").elements())
    types = karpenter_types(requirements)
    vcpus = _limit_vcpus(limits, types)
    if vcpus is None:
        return None
    purchases = _purchases(requirements)
    buckets = frozenset(Bucket(one.quota_family, purchase) for one in types for purchase in purchases)
    return NodePoolCapacity(manifest.name, vcpus, buckets)


def _limit_vcpus(limits: Node, types: tuple[InstanceType, ...]) -> int | None:
    """The limit in vCPUs: that of cpu, else what the others leave of the type for which they leave most."""
    cpu = limits.at("cpu").number()
    if cpu is not None:
        try:
            return int(parse_quantity(cpu))
        except ImpossibleInputError:
            return None
    allowed = [(nodes_within(limits, one), one.vcpus) for one in types]
    return max((nodes * vcpus for nodes, vcpus in allowed if nodes is not None), default=None)


def _purchases(requirements: list[Node]) -> tuple[QuotaPurchase, ...]:
    """How a pool may buy; in either way where it does not say. Reserved capacity was counted when it was bought."""
    for requirement in requirements:
        if requirement.at("key").text() in _CAPACITY_TYPE_LABELS and requirement.at("operator").text() == "In":
            values = {(node.text() or "").lower() for node in requirement.at("values").elements()}
            return tuple(one for one in _QUOTA_PURCHASES if one in values)
    return _QUOTA_PURCHASES
