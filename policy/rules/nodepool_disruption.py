"""nodepool-disruption: Karpenter does not move pods that take minutes to start in order to save a part of a node."""

from collections.abc import Iterator

from pulumi_policy import Severity

from policy.accelerator_pools import accelerator_pools
from policy.accelerators import asks_for_accelerator, device_claims
from policy.manifests import Manifest
from policy.node_pools import NODE_POOL_LABEL, karpenter_pool
from policy.resources import Stack
from policy.rule import Rule, Violation
from policy.values import Node
from policy.workloads import PodSpec, workloads

# What consolidates under-used nodes: today's name, that of v1beta1, and the default of both where none is stated.
_CONSOLIDATING = frozenset({"WhenEmptyOrUnderutilized", "WhenUnderutilized", None})
_REASON = "Underutilized"
_NEVER = "Never"
_DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"


def judge_stack(stack: Stack) -> Iterator[Violation]:
    """One violation for each pool that may be consolidated under the pods that run on it."""
    pools = [pool for resource in stack.resources for pool in accelerator_pools(resource)]
    pods = _accelerator_pods(stack) if pools else []
    for pool in pools:
        disruption = pool.node.at("spec", "disruption")
        if not _consolidates(disruption) or _allows_none(disruption) or _all_are_marked(pool, pods):
            continue
        policy = disruption.at("consolidationPolicy")
        yield Violation(
            what=f"under-used nodes are consolidated ({policy.text() or 'the default'})",
            where=f"{pool} ({policy.path})",
            fix=f"set {policy.path} to WhenEmpty, or mark the pods {_DO_NOT_DISRUPT}",
            subject=pool,
        )


def _accelerator_pods(stack: Stack) -> list[PodSpec]:
    claims = device_claims(stack)
    return [
        pod
        for resource in stack.resources
        for workload in workloads(resource)
        if not workload.is_partial and asks_for_accelerator(workload, claims)
        for pod in workload.pod_specs()
    ]


def _consolidates(disruption: Node) -> bool:
    policy, after = disruption.at("consolidationPolicy"), disruption.at("consolidateAfter")
    if any(node.is_unknown() for node in (disruption, policy, after)):
        return False
    return policy.text() in _CONSOLIDATING and after.text() != _NEVER


def _allows_none(disruption: Node) -> bool:
    """Whether a budget that always holds lets no under-used node go. Of several budgets the strictest counts."""
    for budget in disruption.at("budgets").elements():
        reasons = budget.at("reasons")
        for_this_reason = reasons.is_absent() or _REASON in [node.text() for node in reasons.elements()]
        always = budget.at("schedule").is_absent()
        nodes = budget.at("nodes")
        none = nodes.integer() == 0 or nodes.text() == "0%"
        if nodes.is_unknown() or (none and for_this_reason and always):
            return True
    return False


def _all_are_marked(manifest: Manifest, pods: list[PodSpec]) -> bool:
    """Whether the pool marks its nodes, or every accelerator pod of the stack that may run on it is marked."""
    if _is_marked(manifest.node.at("spec", "template")):
        return True
    pool = karpenter_pool(manifest)
    own = [pod for pod in pods if (pool.takes(pod) if pool else _selects_by_name(pod, manifest.name))]
    return bool(own) and all(_is_marked(pod.around[0]) for pod in own)


def _selects_by_name(pod: PodSpec, name: str) -> bool:
    """For pools of other accelerators, whose types no table holds: whether the pod does not name another pool."""
    return pod.node.at("nodeSelector", NODE_POOL_LABEL).text() in (name, None)


def _is_marked(template: Node) -> bool:
    """Whether a template's annotations forbid disruption, for good or for some time."""
    mark = template.at("metadata", "annotations", _DO_NOT_DISRUPT)
    return mark.is_unknown() or (mark.is_present() and str(mark.scalar()).lower() != "false")


RULE = Rule(
    id="nodepool-disruption",
    title="Karpenter does not consolidate nodes under running servers",
    severity=Severity.MEDIUM,
    why=(
        "moving a server to fill nodes better costs a start of 41 s to 4 min 9 s each time, an outage where it is the "
        "only replica; by default Karpenter does so whenever it finds a cheaper packing."
    ),
    remediation=(
        "Set spec.disruption.consolidationPolicy to WhenEmpty, with a consolidateAfter of some minutes.",
        'Or annotate the pods karpenter.sh/do-not-disrupt: "true", or give the pool a budget of 0 nodes.',
    ),
    judge_stack=judge_stack,
)
