"""The pools of Neuron nodes that a stack holds, and which pods may run on them."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from neuron.errors import ImpossibleInputError
from neuron.instances import CHIP_RESOURCE, INSTANCE_TYPE_LABEL, INSTANCE_TYPES, InstanceType
from neuron.quantity import parse_quantity
from policy.manifests import Manifest, manifests
from policy.resources import Resource, Stack
from policy.values import Node
from policy.workloads import PodSpec

# Nodes that something else made and a program makes known: outputs instanceType, nodes, name.
EXISTING_NODE_GROUP_TYPE = "neuron-serving:index:ExistingNodeGroup"
LEGACY_INSTANCE_TYPE_LABEL = "beta.kubernetes.io/instance-type"
NODE_GROUP_LABEL = "eks.amazonaws.com/nodegroup"
NODE_POOL_LABEL = "karpenter.sh/nodepool"
# Karpenter, and EKS Auto Mode.
LABEL_OWNERS = ("karpenter.k8s.aws", "eks.amazonaws.com")
# Labels that the cloud puts on nodes, such as the zone: a stack does not tell whether a node will have them.
_CLOUD_LABEL = re.compile(
    r"([a-z0-9-]+\.)*(kubernetes\.io|k8s\.io|amazonaws\.com|amazon\.com|k8s\.aws|karpenter\.sh)/.+"
)


@dataclass(frozen=True)
class NodePool:
    """Nodes that are made alike, of one or several Neuron instance types.

    `nodes` says for each type how many there can be at most; None where nothing limits them. `is_seen` is False where
    types, number or labels will be known after the update only. Nodes may have other labels than `labels` unless
    `has_all_labels`; of those, None is certainly missing and "" is there with a value that is not known.
    """

    name: str
    nodes: Mapping[InstanceType, int | None]
    labels: Mapping[str, str | None]
    is_seen: bool = True
    has_all_labels: bool = True

    def takes(self, pod: PodSpec) -> bool:
        """Whether the pod's node selector and required node affinity let it run on a node of the pool."""
        return any(_selects(pod, {**_type_labels(one), **self.labels}, self.has_all_labels) for one in self.nodes)


def node_pools(stack: Stack) -> tuple[NodePool, ...]:
    """The pools of Neuron nodes in the stack."""
    found: list[NodePool | None] = []
    for resource in stack.resources:
        if resource.type in _READERS:
            found.append(_READERS[resource.type](resource))
        found += [karpenter_pool(one) for one in manifests(resource) if one.is_a("karpenter.sh", "NodePool")]
    return tuple(pool for pool in found if pool is not None)


def selects_type(pod: PodSpec, instance: InstanceType) -> bool:
    """Whether the pod's selectors let it run on some node of that instance type."""
    return _selects(pod, _type_labels(instance), has_all_labels=False)


def instance_type_names(group: Resource) -> list[Node]:
    """The instance types of a node group, which may stand in its launch template instead."""
    listed = group.props.at("instanceTypes")
    if listed.is_absent():
        return [one.props.at("instanceType") for one in group.dependencies.get("launchTemplate", ())]
    return [listed] if listed.is_unknown() else list(listed.elements())


def karpenter_types(requirements: Iterable[Node]) -> tuple[InstanceType, ...]:
    """The Neuron instance types that requirements of a Karpenter pool admit."""
    stated = list(requirements)
    return tuple(
        one
        for one in INSTANCE_TYPES.values()
        if all(_fulfils(node, _type_labels(one), has_all_labels=False) for node in stated)
    )


def nodes_within(limits: Node, instance: InstanceType) -> int | None:
    """How many nodes of that type a Karpenter pool's limits allow; None if no limit holds them back."""
    per_node = {
        CHIP_RESOURCE: instance.chips,
        "cpu": instance.vcpus,
        "memory": instance.host_memory_gib * 2**30,
        "nodes": 1,
    }
    allowed = []
    for key, amount in per_node.items():
        limit = limits.at(key).number()
        try:
            allowed += [int(parse_quantity(limit) // amount)] if limit is not None else []
        except ImpossibleInputError:
            continue
    return min(allowed, default=None)


def _node_group(resource: Resource) -> NodePool | None:
    """An EKS managed node group."""
    props = resource.props
    maximum = props.at("scalingConfig", "maxSize")
    names = instance_type_names(resource)
    name = _first_text(props, "nodeGroupName", "nodegroupName")
    labels = _stated_labels(props.at("labels")) | {NODE_GROUP_LABEL: name or "", NODE_POOL_LABEL: None}
    labels_seen = not props.at("labels").is_unknown()
    return _of_types(name or resource.name, names, maximum, labels, labels_seen, has_all_labels=labels_seen)


def _existing_node_group(resource: Resource) -> NodePool | None:
    props = resource.props
    name = props.at("name").text() or resource.name
    labels = {NODE_GROUP_LABEL: name, NODE_POOL_LABEL: None}
    return _of_types(name, [props.at("instanceType")], props.at("nodes"), labels, has_all_labels=False)


_READERS = {
    "aws:eks/nodeGroup:NodeGroup": _node_group,
    "aws-native:eks:Nodegroup": _node_group,
    EXISTING_NODE_GROUP_TYPE: _existing_node_group,
}


def karpenter_pool(manifest: Manifest) -> NodePool | None:
    """A Karpenter pool: its requirements say which types it may start, its limits how many of them."""
    template = manifest.node.at("spec", "template")
    labels = _stated_labels(template.at("metadata", "labels"))
    labels |= {NODE_POOL_LABEL: manifest.name, NODE_GROUP_LABEL: None}
    limits = manifest.node.at("spec", "limits")
    types = karpenter_types(template.at("spec", "requirements").elements())
    nodes = {one: nodes_within(limits, one) for one in types}
    unseen = limits.is_unknown() or any(node.is_unknown() for _, node in limits.fields())
    return NodePool(manifest.name, nodes, labels, is_seen=not unseen) if nodes else None


def _of_types(
    name: str,
    names: list[Node],
    maximum: Node,
    labels: Mapping[str, str | None],
    labels_seen: bool = True,
    *,
    has_all_labels: bool,
) -> NodePool | None:
    """A pool of instance types given by name; of all of them while their names are not known yet."""
    types_seen = not any(node.is_unknown() for node in names)
    listed = [node.text() or "" for node in names] if types_seen else list(INSTANCE_TYPES)
    nodes = {INSTANCE_TYPES[one]: maximum.integer() for one in listed if one in INSTANCE_TYPES}
    is_seen = labels_seen and types_seen and not maximum.is_unknown()
    return NodePool(name, nodes, labels, is_seen, has_all_labels) if nodes else None


def _stated_labels(labels: Node) -> dict[str, str | None]:
    return {key: node.text() or "" for key, node in labels.fields()}


def _first_text(node: Node, *keys: str) -> str | None:
    return next((text for key in keys if (text := node.at(key).text()) is not None), None)


@cache
def _type_labels(instance: InstanceType) -> Mapping[str, str | None]:
    labels: dict[str, str | None] = {
        INSTANCE_TYPE_LABEL: instance.name,
        LEGACY_INSTANCE_TYPE_LABEL: instance.name,
        **{f"{owner}/instance-family": instance.family for owner in LABEL_OWNERS},
        **{f"{owner}/instance-category": instance.quota_family for owner in LABEL_OWNERS},
        **{f"{owner}/instance-size": instance.name.partition(".")[2] for owner in LABEL_OWNERS},
    }
    return MappingProxyType(labels)


def _selects(pod: PodSpec, labels: Mapping[str, str | None], has_all_labels: bool) -> bool:
    """Whether a node with these labels satisfies the pod. What cannot be told counts as satisfied."""
    for key, node in pod.node.at("nodeSelector").fields():
        if not _maybe(labels, key, has_all_labels) and node.text() not in (labels.get(key), None):
            return False
    required = pod.node.at("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    terms = list(required.at("nodeSelectorTerms").elements())
    return not terms or any(
        all(_fulfils(expression, labels, has_all_labels) for expression in term.at("matchExpressions").elements())
        for term in terms
    )


def _fulfils(expression: Node, labels: Mapping[str, str | None], has_all_labels: bool) -> bool:
    """Whether labels fulfil one expression of a node affinity or of Karpenter's requirements."""
    key, operator = expression.at("key").text(), expression.at("operator").text()
    values = [node.text() for node in expression.at("values").elements()]
    if key is None or None in values or _maybe(labels, key, has_all_labels):
        return True
    value = labels.get(key)
    if operator == "In":
        return value in values
    if operator == "NotIn":
        return value not in values
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    # Gt and Lt compare sizes, which a pool's labels do not tell; an operator may also be unknown.
    return True


def _maybe(labels: Mapping[str, str | None], key: str, has_all_labels: bool) -> bool:
    """Whether nodes may have that label with any value."""
    if key in labels:
        return labels[key] == ""
    return not has_all_labels or _CLOUD_LABEL.fullmatch(key) is not None
