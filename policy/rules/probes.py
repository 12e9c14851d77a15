"""probes: a server behind an accelerator is probed, and has the time to load its model."""

from collections.abc import Iterator
from dataclasses import dataclass

from pulumi_policy import Severity

from neuron.rollout import STARTUP_BUDGET_MINIMUM_SECONDS
from policy.accelerators import (
    NO_CLAIMS,
    DeviceClaims,
    accelerator_workloads,
    asks_for_neuron,
    claiming_workloads,
    device_claims,
)
from policy.resources import Resource, Stack
from policy.rule import Rule, Violation
from policy.serving import serving_containers
from policy.values import Node
from policy.workloads import Container, Workload

_HANDLERS = ("httpGet", "tcpSocket", "exec", "grpc")
# What the API server fills in for 0 or nothing:
# https://kubernetes.io/docs/concepts/workloads/pods/probes/
_DEFAULT_PERIOD_SECONDS = 10
_DEFAULT_FAILURE_THRESHOLD = 3


def judge_resource(resource: Resource) -> Iterator[Violation]:
    """Judge the workloads that ask for an extended resource."""
    for workload in accelerator_workloads(resource):
        yield from _judge(workload, NO_CLAIMS)


def judge_stack(stack: Stack) -> Iterator[Violation]:
    """Judge the workloads that ask through DRA claims only, which other resources of the stack define."""
    claims = device_claims(stack)
    for workload in claiming_workloads(stack, claims):
        yield from _judge(workload, claims)


def _judge(workload: Workload, claims: DeviceClaims) -> Iterator[Violation]:
    if workload.is_partial:
        return
    needed_seconds = STARTUP_BUDGET_MINIMUM_SECONDS if asks_for_neuron(workload, claims) else 0
    for _, container in serving_containers(workload):
        for finding in _findings(container, needed_seconds):
            yield Violation(
                what=finding.what,
                where=workload.place(container),
                fix=finding.fix,
                subject=workload.manifest,
            )


@dataclass(frozen=True)
class _Finding:
    what: str
    fix: str


def _findings(container: Container, needed_seconds: int) -> Iterator[_Finding]:
    startup, readiness, liveness = (
        container.node.at(name) for name in ("startupProbe", "readinessProbe", "livenessProbe")
    )
    if not _probes(startup):
        yield _Finding(
            "no startup probe",
            f"add {startup.path} whose periodSeconds x failureThreshold covers the longest load"
            + (f", {needed_seconds} s at least" if needed_seconds else ""),
        )
        yield from _early_kill(liveness, needed_seconds)
    else:
        yield from _short_budget(startup, needed_seconds)
    if not _probes(readiness):
        yield _Finding("no readiness probe", f"add {readiness.path} on the route that answers once the model is loaded")


def _short_budget(startup: Node, needed_seconds: int) -> Iterator[_Finding]:
    budget = _budget_seconds(startup)
    if budget is not None and budget < needed_seconds:
        yield _Finding(
            f"the startup probe gives up after {budget} s; a cold start on Neuron needs {needed_seconds} s at least",
            f"raise {startup.path}.failureThreshold until periodSeconds x failureThreshold is {needed_seconds} or more",
        )


def _early_kill(liveness: Node, needed_seconds: int) -> Iterator[_Finding]:
    budget = _budget_seconds(liveness) if _probes(liveness) else None
    if budget is not None and budget < needed_seconds:
        yield _Finding(
            f"the liveness probe can kill the server after {budget} s, while it still loads",
            "add the startup probe: liveness waits until it has succeeded",
        )


def _probes(probe: Node) -> bool:
    """Whether there is a probe. One that is not yet known counts as there; it has been noted as not seen."""
    return probe.is_unknown() or any(not probe.at(handler).is_absent() for handler in _HANDLERS)


def _budget_seconds(probe: Node) -> int | None:
    """Seconds until a probe that never succeeds gives up; None if that is not known yet."""
    numbers = [probe.at(name) for name in ("initialDelaySeconds", "periodSeconds", "failureThreshold")]
    if any(number.is_unknown() for number in numbers):
        return None
    delay, period, failures = (number.integer() or 0 for number in numbers)
    return delay + (period or _DEFAULT_PERIOD_SECONDS) * (failures or _DEFAULT_FAILURE_THRESHOLD)


RULE = Rule(
    id="probes",
    title="A server on an accelerator has startup and readiness probes",
    severity=Severity.HIGH,
    why=(
        "without probes a server counts as ready while it still loads: replacing one failed 43.8 % of the requests "
        "over 95.2 s, with probes 23.2 % over 64.7 s. A cold start on Neuron took 4 min 9 s, and no probe may cut it."
    ),
    remediation=(
        "Add a readiness probe on a route that answers only when the model is loaded, such as /v1/models.",
        f"Add a startup probe whose periodSeconds x failureThreshold is at least {STARTUP_BUDGET_MINIMUM_SECONDS} s "
        "on Neuron and covers the longest cold start.",
        "Keep a liveness probe only beside a startup probe, which holds it back until the server has started.",
    ),
    judge_resource=judge_resource,
    judge_stack=judge_stack,
)
