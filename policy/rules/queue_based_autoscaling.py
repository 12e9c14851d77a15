"""queue-based-autoscaling: what scales a Neuron workload is its queue, latency or tokens, not how busy it looks."""

import re
from collections.abc import Iterable, Iterator
from typing import Literal

from pulumi_policy import Severity

from policy.accelerators import asks_for_neuron, device_claims
from policy.autoscalers import Autoscaler, autoscalers
from policy.resources import Stack
from policy.rule import Rule, Violation
from policy.values import Node
from policy.workloads import Workload, workloads

Signal = Literal["utilisation", "neutral", "queue", "unknown"]

_UTILISATION = re.compile(r"utili[sz]ation|cpu|memory|neuron_?core", re.IGNORECASE)
# Words of a queue, of latency or of tokens in a metric's name or a query; such a query may divide by cores as well.
_QUEUE = re.compile(
    r"wait|queue|pending|running|request|latency|duration|time_to_first|ttft|inter_token|token|in_?flight|concurren",
    re.IGNORECASE,
)
# What a pod asks for, by kube-state-metrics: no requests that anybody sends.
_RESOURCE_REQUESTS = "resource_requests"
_RESOURCE_TYPES = frozenset({"Resource", "ContainerResource"})
_KEDA_RESOURCES = frozenset({"cpu", "memory"})
# Time tables and the like: they say nothing about load, and excuse no other signal.
_KEDA_NEUTRAL = frozenset({"cron"})
_METRIC_NAMES = (
    ("pods", "metric", "name"),
    ("object", "metric", "name"),
    ("external", "metric", "name"),
    # autoscaling/v2beta1
    ("pods", "metricName"),
    ("object", "metricName"),
    ("external", "metricName"),
)


def judge_stack(stack: Stack) -> Iterator[Violation]:
    """One violation for each autoscaler of a Neuron workload of the stack that sees utilisation only."""
    claims = device_claims(stack)
    targets = {
        workload.manifest.key: workload
        for resource in stack.resources
        for workload in workloads(resource)
        if asks_for_neuron(workload, claims)
    }
    for autoscaler in (one for resource in stack.resources for one in autoscalers(resource)):
        if autoscaler.target in targets:
            yield from _judge(autoscaler, targets[autoscaler.target])


def _judge(autoscaler: Autoscaler, workload: Workload) -> Iterator[Violation]:
    signals = dict(_keda_signals(autoscaler) if autoscaler.is_keda else _metric_signals(autoscaler))
    kinds = set(signals.values())
    if "utilisation" not in kinds or not kinds <= {"utilisation", "neutral"}:
        return
    named = ", ".join(what for what, kind in signals.items() if kind == "utilisation")
    yield Violation(
        what=f"{workload.manifest} is scaled by {named} alone",
        where=str(autoscaler.manifest),
        fix="add vllm:num_requests_waiting per replica, or time to first token; what is there may stay beside it",
        subject=autoscaler.manifest,
    )


def _metric_signals(autoscaler: Autoscaler) -> Iterator[tuple[str, Signal]]:
    spec = autoscaler.manifest.node.at("spec")
    target, metrics = spec.at("targetCPUUtilizationPercentage"), spec.at("metrics")
    if target.is_unknown() or metrics.is_unknown():
        yield "an unknown metric", "unknown"
        return
    listed = list(metrics.elements())
    for metric in listed:
        yield _metric_signal(metric)
    if not listed:
        # https://kubernetes.io/docs/reference/kubernetes-api/autoscaling/horizontal-pod-autoscaler-v2/
        yield ("CPU" if target.is_present() else "CPU, the default where no metric is stated"), "utilisation"


def _metric_signal(metric: Node) -> tuple[str, Signal]:
    if metric.at("type").text() in _RESOURCE_TYPES:
        resource = metric.at("resource", "name").text() or metric.at("containerResource", "name").text()
        return resource or "a resource", "utilisation"
    names = [metric.at(*path) for path in _METRIC_NAMES]
    if any(node.is_unknown() for node in (metric.at("type"), *names)):
        return "an unknown metric", "unknown"
    name = next((text for node in names if (text := node.text())), "a metric without a name")
    return name, _signal([name])


def _keda_signals(autoscaler: Autoscaler) -> Iterator[tuple[str, Signal]]:
    triggers = autoscaler.manifest.node.at("spec", "triggers")
    if triggers.is_unknown():
        yield "an unknown trigger", "unknown"
    for trigger in triggers.elements():
        kind, metadata = trigger.at("type").text(), trigger.at("metadata")
        values = [node for _, node in metadata.fields()]
        if kind is None or metadata.is_unknown() or any(node.is_unknown() for node in values):
            yield f"an unknown trigger ({trigger.path})", "unknown"
        elif kind in _KEDA_RESOURCES:
            yield kind, "utilisation"
        elif kind in _KEDA_NEUTRAL:
            yield kind, "neutral"
        else:
            texts = [metadata.at(key).text() or "" for key in ("query", "metricName", "metricQuery", "expression")]
            yield f"{kind}: {next(filter(None, texts), trigger.path)}", _signal(texts)


def _signal(texts: Iterable[str]) -> Signal:
    """What a metric's name or query measures. What is not recognised gets the benefit of the doubt."""
    text = " ".join(texts).replace(_RESOURCE_REQUESTS, "")
    return "utilisation" if _UTILISATION.search(text) and not _QUEUE.search(text) else "queue"


RULE = Rule(
    id="queue-based-autoscaling",
    title="A Neuron workload scales on its queue",
    severity=Severity.MEDIUM,
    why=(
        "the work is done on the chip: a saturated server used 9 % of its CPU while requests took 3 s, so a CPU target "
        "of 70 % is never reached; memory and core utilisation do not grow with the queue either."
    ),
    remediation=(
        "Scale on requests waiting per replica, on time to first token or on tokens, by KEDA or by an external metric.",
        "Set the maximum to what the accelerators and the vCPU quota allow.",
    ),
    judge_stack=judge_stack,
)
