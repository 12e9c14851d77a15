"""graceful-drain: a server that is told to stop finishes the requests that it has."""

import re
from collections.abc import Iterator

from pulumi_policy import PolicyConfigSchema, Severity

from neuron.rollout import DEFAULT_LONGEST_REQUEST_SECONDS
from policy.accelerators import accelerator_workloads, claiming_workloads, device_claims
from policy.config import number
from policy.resources import Resource, Stack
from policy.rule import Rule, Violation
from policy.serving import serving_containers
from policy.values import Node
from policy.workloads import PodSpec, Workload

_CONFIG_KEY = "longestRequestSeconds"
# https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-termination
_DEFAULT_GRACE_SECONDS = 30
_HANDLERS = ("exec", "httpGet", "tcpSocket", "sleep")
_SLEEP_COMMAND = re.compile(r"\bsleep[\s(]+(\d+(?:\.\d+)?)([smh]?)")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}


def judge_resource(resource: Resource) -> Iterator[Violation]:
    """Judge the workloads that ask for an extended resource."""
    longest = number(resource.config, _CONFIG_KEY, DEFAULT_LONGEST_REQUEST_SECONDS)
    for workload in accelerator_workloads(resource):
        yield from _judge(workload, longest)


def judge_stack(stack: Stack) -> Iterator[Violation]:
    """Judge the workloads that ask through DRA claims only, which other resources of the stack define."""
    longest = number(stack.config, _CONFIG_KEY, DEFAULT_LONGEST_REQUEST_SECONDS)
    for workload in claiming_workloads(stack, device_claims(stack)):
        yield from _judge(workload, longest)


def _judge(workload: Workload, longest_seconds: float) -> Iterator[Violation]:
    for pod, container in serving_containers(workload) if not workload.is_partial else ():
        hook = container.node.at("lifecycle", "preStop")
        if not hook.is_unknown() and all(hook.at(handler).is_absent() for handler in _HANDLERS):
            yield Violation(
                what="no preStop hook",
                where=workload.place(container),
                fix=f"add {hook.path}: {{sleep: {{seconds: ...}}}} that outlasts the endpoints' removal",
                subject=workload.manifest,
            )
        delay, grace = _delay_seconds(hook), _grace_seconds(pod)
        if delay is not None and grace is not None and grace <= delay + longest_seconds:
            grace_node = pod.node.at("terminationGracePeriodSeconds")
            yield Violation(
                what=f"a grace period of {grace} s for {delay:g} s of preStop and a request of {longest_seconds:g} s",
                where=workload.place(container, grace_node),
                fix=f"set {grace_node.path} above {delay + longest_seconds:g}",
                subject=workload.manifest,
            )


def _grace_seconds(pod: PodSpec) -> int | None:
    """The grace period; None if it is not known yet."""
    grace = pod.node.at("terminationGracePeriodSeconds")
    return _DEFAULT_GRACE_SECONDS if grace.is_absent() else grace.integer()


def _delay_seconds(hook: Node) -> float | None:
    """What the hook waits, as far as it tells; None if it is not known yet."""
    seconds, command = hook.at("sleep", "seconds"), hook.at("exec", "command")
    words = list(command.elements())
    if any(node.is_unknown() for node in (seconds, command, *words)):
        return None
    text = " ".join(word.text() or "" for word in words)
    waits = (float(amount) * _SECONDS[unit] for amount, unit in _SLEEP_COMMAND.findall(text))
    return (seconds.integer() or 0) + sum(waits)


RULE = Rule(
    id="graceful-drain",
    title="A server finishes its requests before it stops",
    severity=Severity.MEDIUM,
    why=(
        "vLLM ends about 2 s after SIGTERM and aborts what it is answering, and endpoints and load balancers go on "
        "sending for some seconds; what the grace period cuts off fails for the client."
    ),
    remediation=(
        "Add a preStop hook, such as sleep, that covers the removal of the endpoint and, where the server cannot "
        "drain, the longest request.",
        "Set terminationGracePeriodSeconds above the hook's delay plus the longest request.",
        f"State the longest request to the rule ({_CONFIG_KEY}) if it is not {DEFAULT_LONGEST_REQUEST_SECONDS} s.",
    ),
    judge_resource=judge_resource,
    judge_stack=judge_stack,
    config=PolicyConfigSchema(
        properties={
            _CONFIG_KEY: {"type": "number", "minimum": 0, "default": DEFAULT_LONGEST_REQUEST_SECONDS},
        }
    ),
)
