"""The pools of Neuron nodes that a stack holds, and which pods may run on them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from neuron.errors import ImpossibleInputError
from neuron.instances import CHIP_RESOURCE, INSTANCE_TYPE_LABEL, INSTANCE_TYPES, InstanceType
from neuron.quantity import parse_quantity
from policy.manifests import Manifest, manifests
from policy.resources import Resource, Stack
from policy.values import Node
from policy.workloads import PodSpec

# Nodes that something else made and a program makes known: outputs instanceType, nodes, name.
EXISTING_NODE_GROUP_TYPE = "neuron-serving:index:ExistingNodeGroup"
NODE_GROUP_LABEL = "eks.amazonaws.com/nodegroup"
NODE_POOL_LABEL = "karpenter.sh/nodepool"
_KARPENTER_LABELS = "karpenter.k8s.aws"
# Labels that the cloud puts on nodes, such as the zone: a stack does not tell whether a node will have them.
_CLOUD_LABEL = re.compile(
    r"([a-z0-9-]+\.)*(kubernetes\.io|k8s\.io|amazonaws\.com|amazon\.com|k8s\.aws|karpenter\.sh)/.+"
)


@dataclass(frozen=True)
class NodePool:
    """Nodes that are made alike. `types` are the Neuron instance types that they may have, one at least.

    `nodes` is the most that there can be; None where nothing limits them, or, with `is_seen` False, where it is not
    known yet. A label that is None is certainly missing on the nodes; one that is "" is there with an unknown value.
    """

    name: str
    types: tuple[InstanceType, ...]
    nodes: int | None
    labels: Mapping[str, str | None]
    is_seen: bool = True

    @property
    def instance(self) -> InstanceType:
        """The type to reckon with."""
        return _smallest(self.types)

    def __str__(self) -> str:
        size = "any number of" if self.nodes is None else str(self.nodes)
        return f"{self.name} ({size} x {self.instance.name})"

    def takes(self, pod: PodSpec) -> bool:
        """Whether the pod's node selector and required node affinity let it run on a node of the pool."""
        return any(_selects(pod, {**_type_labels(one), **self.labels}) for one in self.types)


def node_pools(stack: Stack) -> tuple[NodePool, ...]:
    """The pools of Neuron nodes in the stack."""
    found: list[NodePool | None] = []
    for resource in stack.resources:
        if resource.type in _READERS:
            found.append(_READERS[resource.type](resource))
        found += [_karpenter(one) for one in manifests(resource) if one.is_a("karpenter.sh", "NodePool")]
    return tuple(pool for pool in found if pool is not None)


def _node_group(resource: Resource) -> NodePool | None:
    """An EKS managed node group. Its instance types may stand in its launch template instead."""
    props = resource.props
    maximum = props.at("scalingConfig", "maxSize")
    instance_types = list(props.at("instanceTypes").elements())
    if props.at("instanceTypes").is_absent():
        instance_types = [one.props.at("instanceType") for one in resource.dependencies.get("launchTemplate", ())]
    name = _first_text(props, "nodeGroupName", "nodegroupName")
    labels: dict[str, str | None] = {key: node.text() or "" for key, node in props.at("labels").fields()}
    labels |= {NODE_GROUP_LABEL: name or "", NODE_POOL_LABEL: None}
    types_seen = not (props.at("instanceTypes").is_unknown() or any(one.is_unknown() for one in instance_types))
    types = _listed(instance_types) if types_seen else tuple(INSTANCE_TYPES.values())
    is_seen = types_seen and not maximum.is_unknown()
    return NodePool(name or resource.name, types, maximum.integer(), labels, is_seen) if types else None


def _existing_node_group(resource: Resource) -> NodePool | None:
    props = resource.props
    name = props.at("name").text() or resource.name
    types_seen = not props.at("instanceType").is_unknown()
    types = _listed([props.at("instanceType")]) if types_seen else tuple(INSTANCE_TYPES.values())
    nodes = props.at("nodes")
    labels: dict[str, str | None] = {NODE_GROUP_LABEL: name, NODE_POOL_LABEL: None}
    is_seen = types_seen and not nodes.is_unknown()
    return NodePool(name, types, nodes.integer(), labels, is_seen) if types else None


_READERS = {
    "aws:eks/nodeGroup:NodeGroup": _node_group,
    "aws-native:eks:Nodegroup": _node_group,
    EXISTING_NODE_GROUP_TYPE: _existing_node_group,
}


def _karpenter(manifest: Manifest) -> NodePool | None:
    """A Karpenter pool: its requirements say which types it may start, its limits how many of them."""
    template = manifest.node.at("spec", "template")
    labels: dict[str, str | None] = {key: node.text() or "" for key, node in template.at("metadata", "labels").fields()}
    labels |= {NODE_POOL_LABEL: manifest.name, NODE_GROUP_LABEL: None}
    requirements = list(template.at("spec", "requirements").elements())
    types = tuple(
        one for one in INSTANCE_TYPES.values() if all(_fulfils(_type_labels(one), node) for node in requirements)
    )
    if not types:
        return None
    limits = manifest.node.at("spec", "limits")
    limits_seen = not limits.is_unknown() and not any(node.is_unknown() for _, node in limits.fields())
    return NodePool(manifest.name, types, _nodes_within(limits, _smallest(types)), labels, limits_seen)


def _nodes_within(limits: Node, instance: InstanceType) -> int | None:
    """How many nodes of that type the limits allow; None if no limit holds them back."""
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


def _smallest(types: tuple[InstanceType, ...]) -> InstanceType:
    """The type with the fewest chips: nobody knows which of them will come."""
    return min(types, key=lambda one: (one.chips, -one.vcpus))


def _listed(names: list[Node]) -> tuple[InstanceType, ...]:
    return tuple(INSTANCE_TYPES[name] for node in names if (name := node.text() or "") in INSTANCE_TYPES)


def _first_text(node: Node, *keys: str) -> str | None:
    return next((text for key in keys if (text := node.at(key).text()) is not None), None)


def _type_labels(instance: InstanceType) -> dict[str, str | None]:
    return {
        INSTANCE_TYPE_LABEL: instance.name,
        "beta.kubernetes.io/instance-type": instance.name,
        f"{_KARPENTER_LABELS}/instance-family": instance.family,
        f"{_KARPENTER_LABELS}/instance-category": instance.quota_family,
        f"{_KARPENTER_LABELS}/instance-size": instance.name.partition(".")[2],
    }


def _selects(pod: PodSpec, labels: Mapping[str, str | None]) -> bool:
    """Whether a node with these labels satisfies the pod. What cannot be told counts as satisfied."""
    for key, node in pod.node.at("nodeSelector").fields():
        if not _holds(labels, key, "In", [node.text()]):
            return False
    required = pod.node.at("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    terms = list(required.at("nodeSelectorTerms").elements())
    return not terms or any(
        all(_fulfils(labels, expression) for expression in term.at("matchExpressions").elements()) for term in terms
    )


def _fulfils(labels: Mapping[str, str | None], expression: Node) -> bool:
    """Whether labels fulfil one expression of a node affinity or of Karpenter's requirements."""
    key, operator = expression.at("key").text(), expression.at("operator").text()
    if key is None or operator is None:
        return True
    return _holds(labels, key, operator, [node.text() for node in expression.at("values").elements()])


def _holds(labels: Mapping[str, str | None], key: str, operator: str, values: list[str | None]) -> bool:
    if labels.get(key) == "" or None in values or (key not in labels and _CLOUD_LABEL.fullmatch(key)):
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
    # Gt and Lt compare sizes, which a pool's labels do not tell.
    return True
