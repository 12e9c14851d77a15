"""rollout-capacity: a rolling update of an accelerator Deployment fits the accelerators that there are."""

from collections.abc import Iterator, Sequence

from pulumi_policy import Severity

from neuron.errors import ImpossibleInputError
from neuron.quantity import parse_count
from neuron.rollout import RollingUpdate, resolve_rolling_update
from policy.accelerators import accelerator_workloads, claiming_workloads, device_claims
from policy.demand import Demand, Occupancy, Placement, demands
from policy.node_pools import node_pools
from policy.resources import Resource, Stack
from policy.rule import Rule, Violation
from policy.strategy import stated_count, update_counts
from policy.values import Node
from policy.workloads import Workload

_ONE_AFTER_THE_OTHER = "{type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}"
_FIX = f"set spec.strategy to {_ONE_AFTER_THE_OTHER}"


def judge_resource(resource: Resource) -> Iterator[Violation]:
    """Judge what the program states: afterwards the API server's default looks like a stated strategy."""
    for workload in accelerator_workloads(resource):
        yield from _stated_badly(workload)


def judge_stack(stack: Stack) -> Iterator[Violation]:
    """Judge the surge of each accelerator Deployment against the pools of the stack."""
    claims = device_claims(stack)
    for workload in claiming_workloads(stack, claims):
        yield from _stated_badly(workload)
    all_demands = demands(stack, claims)
    placement = Placement(node_pools(stack), all_demands)
    for demand in all_demands:
        if _is_deployment(demand.workload) and not _problem(_strategy(demand.workload)):
            yield from _too_large_surge(demand, placement.pools_for(demand))


def _is_deployment(workload: Workload) -> bool:
    return workload.manifest.kind == "Deployment" and not workload.manifest.is_patch


def _strategy(workload: Workload) -> Node:
    return workload.manifest.node.at("spec", "strategy")


def _stated_badly(workload: Workload) -> Iterator[Violation]:
    strategy = _strategy(workload)
    problem = _problem(strategy) if _is_deployment(workload) else None
    if problem:
        where = f"{workload.manifest} ({strategy.path})"
        yield Violation(problem, where, _FIX, workload.manifest)


def _problem(strategy: Node) -> str | None:
    counts = update_counts(strategy)
    if strategy.at("type").text() == "Recreate" or any(count.is_unknown() for count in (strategy.at("type"), *counts)):
        return None
    if all(count.is_absent() for count in counts):
        return "no strategy is stated, so the Kubernetes default holds: a surge of 25 %, which is one pod or more"
    try:
        surge, unavailable = (parse_count(stated_count(count), 100, round_up=True) for count in counts)
    except ImpossibleInputError as error:
        return f"the strategy cannot be read: {error}"
    return "maxSurge and maxUnavailable are both 0, which is invalid" if surge == unavailable == 0 else None


def _too_large_surge(demand: Demand, usable: Sequence[Occupancy]) -> Iterator[Violation]:
    update = _resolved(demand)
    sizes = [demand.cores(one.instance) for one in usable]
    if update is None or update.max_surge == 0 or not usable or None in sizes:
        return
    free = [one.free(cores or 0) for one, cores in zip(usable, sizes, strict=True)]
    proven = sum(left or 0 for left in free)
    # An unlimited pool beside a full one proves nothing; a pool that only the update will show might.
    unseen = not all(one.pool.is_seen for one in usable)
    if proven >= update.max_surge or unseen or (None in free and 0 not in free):
        return
    manifest = demand.workload.manifest
    yield Violation(
        what=f"maxSurge comes to {update.max_surge} more pods, but there is room for {proven} "
        f"beside {demand.count} of its own and the others on {', '.join(map(str, usable))}",
        where=f"{manifest} ({_strategy(demand.workload).path}.rollingUpdate.maxSurge)",
        fix=f"{_FIX}, or raise the maximum of the pool",
        subject=manifest,
    )


def _resolved(demand: Demand) -> RollingUpdate | None:
    """What a rolling update does; None where there is none, where it is not known, or where it is stated badly."""
    strategy = _strategy(demand.workload)
    counts = update_counts(strategy)
    unknown = any(node.is_unknown() for node in (strategy.at("type"), *counts))
    if unknown or demand.count is None or strategy.at("type").text() == "Recreate":
        return None
    try:
        return resolve_rolling_update(stated_count(counts[0]), stated_count(counts[1]), demand.count)
    except ImpossibleInputError:
        return None


RULE = Rule(
    id="rollout-capacity",
    title="A rollout fits the accelerators that there are",
    severity=Severity.HIGH,
    why=(
        "a surge pod without a free accelerator stays Pending on Insufficient aws.amazon.com/neuron: with one "
        "accelerator and surge 1 the rollout never completed. Replacing the pod in place does, at the price of 64.7 s "
        "of outage where there is one replica."
    ),
    remediation=(
        f"State the strategy. Without a spare accelerator: {_ONE_AFTER_THE_OTHER}, or Recreate.",
        "For no outage keep one node more than the replicas need, with maxSurge 1 and maxUnavailable 0.",
        "If an autoscaler scales the Deployment, reckon with its maximum.",
    ),
    judge_resource=judge_resource,
    judge_stack=judge_stack,
)
