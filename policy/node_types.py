"""On which instance types a pod runs, as far as its selectors or the stack's pools say it."""

from collections.abc import Iterable, Iterator

from neuron.instances import INSTANCE_TYPE_LABEL, INSTANCE_TYPES, InstanceType
from policy.node_pools import LABEL_OWNERS, LEGACY_INSTANCE_TYPE_LABEL, NodePool, selects_type
from policy.values import Node
from policy.workloads import PodSpec

_TYPE_LABELS = (INSTANCE_TYPE_LABEL, LEGACY_INSTANCE_TYPE_LABEL)
_FAMILY_LABELS = tuple(f"{owner}/instance-family" for owner in LABEL_OWNERS)


def stated_families(pod: PodSpec) -> frozenset[str]:
    """The instance families that node selector or required node affinity name; empty where they leave it open.

    Families need not be in the table of instance types: what is read is their name.
    """
    selector = pod.node.at("nodeSelector")
    own = frozenset(family for key, node in selector.fields() for family in _families(key, [node]))
    if own:
        return own
    required = pod.node.at("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    terms = [frozenset(_term_families(term)) for term in required.at("nodeSelectorTerms").elements()]
    # Terms are alternatives: one that names no family admits every node.
    return frozenset[str]().union(*terms) if all(terms) else frozenset()


def stated_types(pod: PodSpec) -> tuple[InstanceType, ...]:
    """The Neuron instance types that the pod's own selectors leave; none where they name no type or family."""
    families = stated_families(pod)
    return tuple(one for one in INSTANCE_TYPES.values() if one.family in families and selects_type(pod, one))


def pool_types(pod: PodSpec, pools: Iterable[NodePool]) -> tuple[InstanceType, ...]:
    """The Neuron instance types of the pools that the pod may run on; none where a pool may have any type."""
    usable = [pool for pool in pools if pool.takes(pod)]
    if any(not pool.is_seen or len(pool.nodes) == len(INSTANCE_TYPES) for pool in usable):
        return ()
    return tuple(dict.fromkeys(one for pool in usable for one in pool.nodes if selects_type(pod, one)))


def _term_families(term: Node) -> Iterator[str]:
    for expression in term.at("matchExpressions").elements():
        if expression.at("operator").text() == "In":
            yield from _families(expression.at("key").text() or "", expression.at("values").elements())


def _families(key: str, values: Iterable[Node]) -> Iterator[str]:
    if key in _TYPE_LABELS or key in _FAMILY_LABELS:
        families = ((node.text() or "").partition(".")[0] for node in values)
        yield from (family for family in families if family)
