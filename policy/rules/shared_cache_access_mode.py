"""shared-cache-access-mode: the model cache can be mounted by all who need it, and is not written by servers."""

import re
from collections.abc import Iterator, Mapping, Sequence

from pulumi_policy import Severity

from neuron.errors import ImpossibleInputError
from neuron.rollout import resolve_rolling_update
from policy.accelerators import accelerator_workloads, asks_for_accelerator, claiming_workloads, device_claims
from policy.autoscalers import ReplicaMaxima, autoscaler_maxima
from policy.demand import pods_at_most
from policy.manifests import manifests
from policy.resources import Resource, Stack
from policy.rule import Rule, Violation
from policy.serving import serving_containers
from policy.strategy import stated_count, update_counts
from policy.values import Node
from policy.workloads import PodSpec, Workload, workloads

# ReadWriteOncePod is stricter still.
_ONE_NODE_MODES = frozenset({"ReadWriteOnce", "ReadWriteOncePod"})
# Volumes that outlive a pod, and whose content others may therefore see.
_LASTING_VOLUMES = ("persistentVolumeClaim", "hostPath", "nfs", "csi")
_CACHE_WORD = re.compile(r"model|cache|weights|checkpoint|hugging-?face|artifact", re.IGNORECASE)

_FIX_MODE = (
    "use a claim of mode ReadOnlyMany or ReadWriteMany (Mountpoint for S3, EFS, FSx), or a claim for each replica"
)


def judge_resource(resource: Resource) -> Iterator[Violation]:
    """Judge the mounts of the servers that ask for an extended resource."""
    for workload in accelerator_workloads(resource):
        yield from _writable_mounts(workload)


def judge_stack(stack: Stack) -> Iterator[Violation]:
    """Judge the claims of the stack that accelerator workloads share, and mounts of those that ask through DRA."""
    claims = device_claims(stack)
    for workload in claiming_workloads(stack, claims):
        yield from _writable_mounts(workload)
    one_node_claims = dict(_one_node_claims(stack))
    maxima = autoscaler_maxima(stack)
    for resource in stack.resources if one_node_claims else ():
        for workload in workloads(resource):
            if asks_for_accelerator(workload, claims) and not workload.kind.ends:
                yield from _shared_claims(workload, one_node_claims, maxima)


def _one_node_claims(stack: Stack) -> Iterator[tuple[tuple[str, str], Sequence[str]]]:
    """Namespace and name of the claims that only one node can mount, with their modes."""
    for manifest in (one for resource in stack.resources for one in manifests(resource)):
        if manifest.is_a("", "PersistentVolumeClaim"):
            modes = [node.text() or "" for node in manifest.node.at("spec", "accessModes").elements()]
            if modes and _ONE_NODE_MODES.issuperset(modes):
                yield (manifest.namespace, manifest.name), modes


def _shared_claims(
    workload: Workload, one_node_claims: Mapping[tuple[str, str], Sequence[str]], maxima: ReplicaMaxima
) -> Iterator[Violation]:
    for pod in workload.pod_specs():
        for volume in pod.node.at("volumes").elements():
            name = volume.at("persistentVolumeClaim", "claimName")
            modes = one_node_claims.get((workload.manifest.namespace, name.text() or ""))
            sharers = _sharers(workload, pod, maxima) if modes else None
            if modes and sharers:
                yield Violation(
                    what=f"claim {name.text()} of mode {', '.join(modes)} is used by {sharers}",
                    where=f"{workload.manifest} ({name.path})",
                    fix=_FIX_MODE,
                    subject=workload.manifest,
                )


def _sharers(workload: Workload, pod: PodSpec, maxima: ReplicaMaxima) -> str | None:
    """How several pods come to use one claim at a time; None if they do not, as far as that is known."""
    if workload.manifest.kind == "DaemonSet":
        return "a pod on every node"
    replicas = pods_at_most(workload, pod, maxima)
    if replicas is not None and replicas > 1:
        return f"{replicas} replicas"
    if workload.manifest.kind != "Deployment" or workload.is_partial or replicas is None:
        return None
    surge = _surge(workload.manifest.node.at("spec", "strategy"), replicas)
    return f"1 replica and, while it rolls, {surge} more" if replicas and surge else None


def _surge(strategy: Node, replicas: int) -> int:
    """Pods beside the replicas during a rollout; 0 as well where that is not known yet."""
    counts = update_counts(strategy)
    if strategy.at("type").text() == "Recreate" or any(one.is_unknown() for one in (strategy.at("type"), *counts)):
        return 0
    try:
        return resolve_rolling_update(stated_count(counts[0]), stated_count(counts[1]), replicas).max_surge
    except ImpossibleInputError:
        return 0


def _writable_mounts(workload: Workload) -> Iterator[Violation]:
    for pod, container in serving_containers(workload) if not workload.is_partial else ():
        volumes = {volume.at("name").text(): volume for volume in pod.node.at("volumes").elements()}
        for mount in container.node.at("volumeMounts").elements():
            volume = volumes.get(mount.at("name").text())
            if volume is not None and _is_model_cache(volume, mount) and _is_writable(volume, mount):
                yield Violation(
                    what=f"the model cache is mounted for writing at {mount.at('mountPath').text()}",
                    where=workload.place(container, mount),
                    fix=f"set {mount.path}.readOnly to true, and let a Job or an init container fill the cache",
                    subject=workload.manifest,
                )


def _is_model_cache(volume: Node, mount: Node) -> bool:
    """Whether a volume outlives the pod and its names say that it holds a model, or what was compiled of one."""
    sources = [volume.at(source) for source in _LASTING_VOLUMES]
    if not any(source.is_present() for source in sources):
        return False
    names = (mount.at("name"), mount.at("mountPath"), volume.at("persistentVolumeClaim", "claimName"))
    return any(_CACHE_WORD.search(node.text() or "") for node in names)


def _is_writable(volume: Node, mount: Node) -> bool:
    read_only = [mount.at("readOnly"), *(volume.at(source, "readOnly") for source in _LASTING_VOLUMES)]
    return not any(node.is_unknown() or node.scalar() is True for node in read_only)


RULE = Rule(
    id="shared-cache-access-mode",
    title="Servers share the model cache, and only read it",
    severity=Severity.MEDIUM,
    why=(
        "a second pod on another node waits forever for a volume of mode ReadWriteOnce, so that neither a second "
        "replica nor a surge gets ready; and half an artifact, left by a server that may write, makes the next start "
        "take 4 min 9 s instead of 41 s, or fail."
    ),
    remediation=(
        "Give the cache a claim that many nodes can mount: ReadOnlyMany or ReadWriteMany.",
        "Mount it with readOnly: true in the serving container; publish into it from a Job.",
    ),
    judge_resource=judge_resource,
    judge_stack=judge_stack,
)
