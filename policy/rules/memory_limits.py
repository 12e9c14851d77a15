"""memory-limits: every container of every workload states how much memory it may take at most."""

from collections.abc import Iterator

from pulumi_policy import Severity

from neuron.errors import ImpossibleInputError
from neuron.quantity import parse_quantity
from policy.resources import Resource
from policy.rule import Rule, Violation
from policy.values import Node
from policy.workloads import workloads


def judge(resource: Resource) -> Iterator[Violation]:
    """One violation for each container without a usable limit."""
    for workload in workloads(resource):
        if workload.is_partial:
            continue
        for container in workload.containers():
            limit = container.node.at("resources", "limits", "memory")
            problem = None if container.is_ephemeral else _problem(limit)
            if problem:
                yield Violation(
                    what=problem,
                    where=workload.place(container),
                    fix=f'set {container.node.path}.resources.limits.memory to the most it may take, such as "4Gi"',
                    subject=workload.manifest,
                )


def _problem(limit: Node) -> str | None:
    if limit.is_absent():
        return "no memory limit"
    value = limit.number()
    if value is None:
        return None if limit.is_unknown() else "the memory limit is not a quantity"
    try:
        # The API server takes 0 for a limit, and the kubelet then sets none.
        return "the memory limit is 0, which is none" if parse_quantity(value) <= 0 else None
    except ImpossibleInputError as error:
        return f"the memory limit cannot be read: {error}"


RULE = Rule(
    id="memory-limits",
    title="Every container has a memory limit",
    severity=Severity.HIGH,
    why=(
        "loading a model takes about three times its checkpoint in host memory. Without a limit a Qwen3-8B took the "
        "whole node down (NodeStatusUnknown) after 6 minutes; with one, only the container was killed (exit code 137)."
    ),
    remediation=(
        "Measure or estimate the largest memory use of the container, the load of the model included.",
        "Set resources.limits.memory to it on every container, init containers and sidecars too.",
        "A request may be left out: it then equals the limit.",
    ),
    judge_resource=judge,
)
