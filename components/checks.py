"""What a stack file's values mean together: every fault that the shape alone does not show."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from components.autoscaling_checks import check_autoscaling
from components.edge_checks import check_edge
from components.faults import Fault
from components.observability_checks import check_observability
from components.platform_checks import check_platform
from components.settings import Settings
from components.settings.cluster import CreatedCluster
from components.settings.serving import ModelSettings, ServingSettings
from neuron import memory
from neuron.disk import PodOnDisk, disk_gib, needed_disk_gib
from neuron.images import IMAGE_LINES, SAVE_SHARDED_CHECKPOINT, SHARDING_KEYS, ImageLine, lines_for
from neuron.instances import INSTANCE_TYPES, InstanceType
from neuron.model import CHECKPOINT_GB, CONTEXT_TOKENS, Model, storage_gib
from neuron.placement import Pool, allowed_tensor_parallel, chips_per_pod, free_slots


def check(settings: Settings) -> list[Fault]:
    """All faults between the values of a well-formed stack file."""
    faults = [
        *_not_empty("nodeGroups", settings.node_groups),
        *([] if _makes_something_else(settings) else _not_empty("serving", settings.serving)),
        *_unique("nodeGroups", [group.name for group in settings.node_groups]),
        *_unique("serving", [one.name for one in settings.serving]),
        *_node_groups(settings),
        *_model_cache(settings),
        *_s3_endpoint(settings),
    ]
    for index, serving in enumerate(settings.serving):
        faults.extend(_serving(f"serving[{index}]", serving, settings))
        faults.extend(_hf_token(f"serving[{index}]", serving, settings))
    layers = [check_edge, check_observability, check_autoscaling, check_platform]
    return [*faults, *_capacity(settings), *_disk(settings), *(fault for layer in layers for fault in layer(settings))]


def _makes_something_else(settings: Settings) -> bool:
    """A stack may leave serving to another one if it makes what that one runs on."""
    groups_made = any(group.create is not None for group in settings.node_groups)
    return settings.cluster.mode == "create" or groups_made or settings.accelerator is not None


def checkpoint_gb(model: ModelSettings) -> float | None:
    """Size of the checkpoint in decimal gigabytes: stated, else known from a measurement, else None."""
    return model.checkpoint_gb if model.checkpoint_gb is not None else CHECKPOINT_GB.get(model.id)


def to_model(model: ModelSettings) -> Model:
    """The domain's model; the checkpoint's size must be known (check() has said so)."""
    size_gb = checkpoint_gb(model)
    if size_gb is None:
        raise ValueError(f"unknown checkpoint size of {model.id}")
    values = model.model_dump(by_alias=False) | {"checkpoint_gb": size_gb}
    return Model(**values)


def _not_empty(path: str, entries: Sequence[object]) -> Iterator[Fault]:
    if not entries:
        yield Fault(path, "an empty list", "at least one entry", "add one")


def _model_cache(settings: Settings) -> Iterator[Fault]:
    cache = settings.model_cache
    if cache is not None and cache.backend == "s3" and settings.cluster.mode == "kubeconfig":
        yield Fault(
            "modelCache.backend",
            "s3 in a cluster of mode kubeconfig",
            "hostpath: pods get their right to a bucket by the cluster's EKS name",
            "set hostpath, or another cluster.mode",
        )
    if cache is not None and not cache.create_bucket and cache.bucket is None:
        yield Fault(
            "modelCache.bucket", "nothing, with createBucket false", "the name of a bucket that exists", "set it"
        )
    if cache is None:
        for index, one in enumerate(settings.serving):
            if one.on_miss == "fail":
                found = "fail, in a stack where nothing is ever published"
                yield Fault(f"serving[{index}].onMiss", found, "compile", "leave onMiss out, or add a modelCache")


def _s3_endpoint(settings: Settings) -> Iterator[Fault]:
    cache = settings.model_cache
    made_here = isinstance(settings.cluster, CreatedCluster) and settings.cluster.vpc_cidr is not None
    if cache is not None and cache.restrict_endpoint and not (cache.backend == "s3" and made_here):
        yield Fault(
            "modelCache.restrictEndpoint",
            "true, without a bucket in a VPC made here",
            "true with backend s3, cluster.mode create and cluster.vpcCidr",
            "leave it out",
        )


def _unique(path: str, names: Iterable[str]) -> Iterator[Fault]:
    for name, count in Counter(names).items():
        if count > 1:
            yield Fault(path, f"{count} entries named {name}", "one entry a name", "rename all but one")


def _node_groups(settings: Settings) -> Iterator[Fault]:
    for index, group in enumerate(settings.node_groups):
        if group.instance_type not in INSTANCE_TYPES:
            yield Fault(
                f"nodeGroups[{index}].instanceType", group.instance_type, ", ".join(INSTANCE_TYPES), "set one of these"
            )


def _serving(path: str, serving: ServingSettings, settings: Settings) -> Iterator[Fault]:
    """Faults of one model server, as far as its node group and image line are known."""
    group = settings.node_group(serving.node_group)
    instance = INSTANCE_TYPES.get(group.instance_type) if group else None
    line = IMAGE_LINES.get(serving.image_line)
    size_gb = checkpoint_gb(serving.model)
    if group is None:
        names = ", ".join(one.name for one in settings.node_groups)
        yield Fault(f"{path}.nodeGroup", serving.node_group, names, "name a group of nodeGroups")
    if line is None:
        yield Fault(f"{path}.imageLine", serving.image_line, ", ".join(IMAGE_LINES), "set one of these")
    if size_gb is None:
        yield Fault(
            f"{path}.model.checkpointGb",
            f"none for {serving.model.id}, whose size is not known here",
            "the size of the checkpoint's files in decimal gigabytes",
            "set checkpointGb",
        )
    yield from _context(path, serving.model)
    yield from _sharded_checkpoint(path, serving, line)
    if instance is None:
        return
    yield from _line_runs(path, line, instance)
    yield from _tensor_parallel(path, serving.model, instance)
    if size_gb is not None:
        yield from _memory(path, serving, instance, line)


def _hf_token(path: str, serving: ServingSettings, settings: Settings) -> Iterator[Fault]:
    if serving.hf_token_secret_arn is None:
        return
    if serving.hf_token_secret is not None:
        yield Fault(f"{path}.hfTokenSecretArn", "one beside hfTokenSecret", "one of the two", "drop one")
    if settings.cluster.mode not in ("create", "existing"):
        yield Fault(
            f"{path}.hfTokenSecretArn",
            f"one in a cluster of mode {settings.cluster.mode}",
            "mode create or existing: pods read it by a role that is bound to the cluster by its EKS name",
            "use hfTokenSecret, or change cluster.mode",
        )


def _line_runs(path: str, line: ImageLine | None, instance: InstanceType) -> Iterator[Fault]:
    if line is not None and instance.family not in line.families:
        allowed = lines_for(instance.family)
        yield Fault(
            f"{path}.imageLine",
            f"{line.name}, which runs on {', '.join(sorted(line.families))} and not on {instance.name}",
            ", ".join(allowed),
            f"set {allowed[0] if len(allowed) == 1 else 'one of these'}, or move to a node group of another family",
        )


def _tensor_parallel(path: str, model: ModelSettings, instance: InstanceType) -> Iterator[Fault]:
    allowed = allowed_tensor_parallel(instance)
    if model.tensor_parallel not in allowed:
        degrees = ", ".join(map(str, allowed))
        cores = instance.logical_cores_per_chip * instance.chips
        yield Fault(
            f"{path}.model.tensorParallel",
            str(model.tensor_parallel),
            f"{degrees} (they divide the {cores} NeuronCores of {instance.name})",
            f"set {max(degree for degree in allowed if degree <= max(model.tensor_parallel, 1))}",
        )


def _context(path: str, model: ModelSettings) -> Iterator[Fault]:
    """vLLM would say so as well, after the node is there and the weights are downloaded."""
    context = CONTEXT_TOKENS.get(model.id)
    if context is not None and model.max_model_len > context:
        yield Fault(
            f"{path}.model.maxModelLen",
            str(model.max_model_len),
            f"{context} or less, the context of {model.id}",
            f"set {context} at most",
        )


def _sharded_checkpoint(path: str, serving: ServingSettings, line: ImageLine | None) -> Iterator[Fault]:
    """One setting says it: disk, artifact and pods follow from that, and would not from the compiler's own key."""
    if serving.model.sharded_checkpoint and line is not None and not line.saves_sharded_checkpoints:
        able = " or ".join(one.name for one in IMAGE_LINES.values() if one.saves_sharded_checkpoints)
        yield Fault(
            f"{path}.model.shardedCheckpoint",
            f"true with imageLine {line.name}, which saves no sharded checkpoints",
            f"false, or true with {able}",
            "leave it out",
        )
    for key in SHARDING_KEYS:
        if key in serving.neuron_config:
            value = serving.neuron_config[key]
            can = line is not None and line.saves_sharded_checkpoints and not serving.model.sharded_checkpoint
            wanted = key == SAVE_SHARDED_CHECKPOINT and value is True and can
            yield Fault(
                f"{path}.neuronConfig.{key}",
                json.dumps(value),
                "nothing: model.shardedCheckpoint decides",
                "set model.shardedCheckpoint: true in its place" if wanted else "leave it out",
            )


def _memory(path: str, serving: ServingSettings, instance: InstanceType, line: ImageLine | None) -> Iterator[Fault]:
    """The load peak of a model must fit the host: (src) Qwen3-8B without a limit took a whole node down."""
    model = to_model(serving.model)
    needed_gib = memory.container_memory_gib(model)
    if serving.memory_gib is not None and serving.memory_gib < needed_gib:
        yield Fault(
            f"{path}.memoryGib",
            f"{serving.memory_gib} for a model that peaks at {memory.load_peak_gib(model):.1f} GiB while it loads",
            f"{needed_gib} or more",
            "leave memoryGib out: it is derived",
        )
    fit = memory.fit(max(needed_gib, serving.memory_gib or 0), instance)
    if fit.fits:
        return
    smallest = memory.smallest_type_that_fits(needed_gib, line.families if line else {instance.family})
    yield Fault(
        f"{path}.model",
        f"{model.id}, which needs {fit.needed_mib / 1024:.1f} GiB of host memory "
        f"(about {memory.LOAD_PEAK_FACTOR}x its {model.checkpoint_gb:g} GB checkpoint while it is sharded)",
        f"{fit.available_mib / 1024:.1f} GiB on {instance.name}",
        f"use {smallest.name}, the smallest type that fits" if smallest else "use a smaller model: no type fits",
    )


def _capacity(settings: Settings) -> Iterator[Fault]:
    """Replicas that share a node group must have an accelerator slot each."""
    for group in settings.node_groups:
        instance = INSTANCE_TYPES.get(group.instance_type)
        users = [(index, one) for index, one in enumerate(settings.serving) if one.node_group == group.name]
        if instance is None or any(
            one.model.tensor_parallel not in allowed_tensor_parallel(instance) for _, one in users
        ):
            continue
        pods = [
            chips_per_pod(one.model.tensor_parallel, instance) for _, one in users for _ in range(one.most_replicas)
        ]
        if free_slots(Pool(instance, group.nodes), 1, pods) < 0:
            scaled = any(one.autoscaling for _, one in users)
            key = "autoscaling.maxReplicas" if scaled else "replicas"
            yield Fault(
                f"serving[{users[0][0]}].{key}" if len(users) == 1 else "serving",
                f"{len(pods)} pods that ask for {sum(pods)} chips in node group {group.name}",
                f"{group.nodes * instance.chips} chips ({group.nodes} x {instance.name})",
                f"lower {'maxReplicas' if scaled else 'replicas'} or raise nodes of the node group",
            )


def _disk(settings: Settings) -> Iterator[Fault]:
    """The volume of nodes made here must hold system, images and what the pods write."""
    for index, group in enumerate(settings.node_groups):
        instance = INSTANCE_TYPES.get(group.instance_type)
        users = [one for one in settings.serving if one.node_group == group.name]
        if group.create is None or instance is None or not users:
            continue
        needed_gib = needed_disk_gib((pod for one in users for pod in _pods_on_disk(one, instance)), instance.chips)
        if disk_gib(group.create.disk_gib, instance.nvme_gb) < needed_gib:
            yield Fault(
                f"nodeGroups[{index}].create.diskGib",
                f"{group.create.disk_gib}, for the system, the image and the pods that a node may hold",
                f"{needed_gib} or more",
                f"set {needed_gib}",
            )


def _pods_on_disk(serving: ServingSettings, instance: InstanceType) -> list[PodOnDisk]:
    """A server's pods; none where the size of its model is not known, which is a fault of its own."""
    if checkpoint_gb(serving.model) is None:
        return []
    chips = chips_per_pod(serving.model.tensor_parallel, instance)
    return [PodOnDisk(chips, storage_gib(to_model(serving.model)), serving.image_line)] * serving.replicas
