"""host-memory-fit: the memory limits of a Neuron pod fit its node, and are enough to load the model."""

import re
from collections.abc import Iterable, Iterator, Sequence

from pulumi_policy import Severity

from neuron.errors import ImpossibleInputError
from neuron.instances import InstanceType
from neuron.memory import Fit, checkpoint_load_peak_gib
from neuron.model import CHECKPOINT_GB
from neuron.quantity import parse_quantity
from policy.accelerators import NO_CLAIMS, DeviceClaims, asks_for_neuron, device_claims, extended_resources
from policy.node_pools import NodePool, node_pools
from policy.node_types import pool_types, stated_types
from policy.resources import Resource, Stack
from policy.rule import Rule, Violation
from policy.serving import serving_containers
from policy.workloads import Container, PodSpec, Workload, workloads

_MIB = 2**20
_MODEL = re.compile(r"--model(?:-path|-id)?[=\s]+[\"']?([^\s\"']+)|\bvllm\s+serve\s+[\"']?([^\s\"'-][^\s\"']*)")


def judge_resource(resource: Resource) -> Iterator[Violation]:
    """Judge the pods that name their node type, and every limit against its model."""
    for workload in _neuron_workloads(resource, NO_CLAIMS):
        yield from _judge(workload, ())


def judge_stack(stack: Stack) -> Iterator[Violation]:
    """Judge the pods whose node type only a pool of the stack says, and those that ask through DRA claims."""
    claims, pools = device_claims(stack), node_pools(stack)
    for resource in stack.resources if claims or pools else ():
        for workload in _neuron_workloads(resource, claims):
            if not asks_for_neuron(workload):
                yield from _judge(workload, pools)
                continue
            for pod in workload.pod_specs():
                if not stated_types(pod):
                    yield from _too_large(workload, pod, pool_types(pod, pools))


def _neuron_workloads(resource: Resource, claims: DeviceClaims) -> Iterator[Workload]:
    for workload in workloads(resource):
        if not workload.is_partial and asks_for_neuron(workload, claims):
            yield workload


def _judge(workload: Workload, pools: Sequence[NodePool]) -> Iterator[Violation]:
    for pod in workload.pod_specs():
        yield from _too_large(workload, pod, stated_types(pod) or pool_types(pod, pools))
    yield from _too_small(workload)


def _too_large(workload: Workload, pod: PodSpec, types: Iterable[InstanceType]) -> Iterator[Violation]:
    """A violation if no type that the pod may run on holds its limits."""
    largest = max(types, key=lambda one: one.allocatable_memory_mib, default=None)
    if largest is None:
        return
    fit = Fit(_pod_limit_mib(pod), largest.allocatable_memory_mib)
    if not fit.fits:
        yield Violation(
            what=f"the memory limits sum up to {fit.needed_mib} MiB; {largest.name} has {fit.available_mib} for pods",
            where=f"{workload.manifest} ({pod.node.path})",
            fix="choose an instance type with more host memory, or a smaller model",
            subject=workload.manifest,
        )


def _pod_limit_mib(pod: PodSpec) -> int:
    """Limits of what runs at the same time: the containers together, or one init container and earlier sidecars."""
    running, sidecars, starting = 0, 0, 0
    for container in pod.containers():
        limit = _limit_mib(container) or 0
        if container.is_init:
            starting = max(starting, sidecars + limit)
        elif not container.is_ephemeral:
            running += limit
            sidecars += limit if container.field == "initContainers" else 0
    return max(running, starting)


def _limit_mib(container: Container) -> int | None:
    """The limit, rounded up; None where there is none, where it is not known yet or cannot be read."""
    value = container.node.at("resources", "limits", "memory").number()
    try:
        return None if value is None else int(-(-parse_quantity(value) // _MIB))
    except ImpossibleInputError:
        return None


def _too_small(workload: Workload) -> Iterator[Violation]:
    """A violation for each container whose limit is below what loading its model takes."""
    servers = {container.node.path for _, container in serving_containers(workload)}
    for container in workload.containers():
        loads = container.node.path in servers or bool(extended_resources(container))
        model = _model(container) if loads else None
        limit_mib = _limit_mib(container) if model else None
        if model is None or limit_mib is None:
            continue
        peak_gib = checkpoint_load_peak_gib(CHECKPOINT_GB[model])
        if limit_mib < peak_gib * 1024:
            yield Violation(
                what=f"{limit_mib / 1024:.1f} GiB for {model}, which peaks at {peak_gib:.1f} GiB while it loads",
                where=workload.place(container),
                fix=f"raise {container.node.path}.resources.limits.memory to {int(peak_gib) + 1}Gi or more",
                subject=workload.manifest,
            )


def _model(container: Container) -> str | None:
    """The model that the command line names, if the size of its checkpoint is known."""
    words = (node.text() or "" for field in ("command", "args") for node in container.node.at(field).elements())
    match = _MODEL.search(" ".join(words))
    name = (match[1] or match[2]) if match else None
    return name if name in CHECKPOINT_GB else None


RULE = Rule(
    id="host-memory-fit",
    title="A Neuron pod fits the host memory of its node",
    severity=Severity.HIGH,
    why=(
        "weights are sharded in host memory on their way to the chip, about three times the checkpoint at the peak: a "
        "Qwen3-4B (12 GB) grew past 28 GiB on a trn1.2xlarge, which has 29.9 GiB for pods, and was killed."
    ),
    remediation=(
        "Sum the memory limits of the containers and compare them with what the instance type has for pods.",
        "Choose an instance type with more host memory (inf2.8xlarge, trn1.32xlarge, trn2.3xlarge) or a smaller model.",
        "Keep the limit above the load peak: about three times the checkpoint.",
    ),
    judge_resource=judge_resource,
    judge_stack=judge_stack,
)
