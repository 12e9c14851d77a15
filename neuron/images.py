"""The image lines: which vLLM for Neuron runs where, how it is told what to do, and what it calls its metrics.

Sources: AWS Neuron SDK release notes and vLLM user guides (SDK 2.25 to 2.33), the deep learning container index of
2026-08, vLLM's own sources. A line's `support_note` says why to choose it, or why not.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from neuron.errors import ImpossibleInputError
from neuron.model import Model

REPOSITORY = "public.ecr.aws/neuron/pytorch-inference-vllm-neuronx"
PORT = 8080

Support = Literal["supported", "contradicted", "out-of-support"]


@dataclass(frozen=True)
class MetricNames:
    """Names that differ between vLLM's engines; the queue's own (vllm:num_requests_waiting) does not."""

    per_token_seconds: str
    cache_usage: str | None


_V0_METRICS = MetricNames("vllm:time_per_output_token_seconds", cache_usage=None)
_V1_METRICS = MetricNames("vllm:inter_token_latency_seconds", cache_usage="vllm:kv_cache_usage_perc")


@dataclass(frozen=True)
class ImageLine:
    """One line of images. `config_flag` takes the compiler settings as JSON, under `config_key` where it has one.

    `artifacts_variable` points the server at compiled artifacts, `compile_cache_variable` at the compiler's own cache;
    `saves_sharded_checkpoints` says that the compiler can leave each rank's weights beside the graphs for the server;
    `miss_is_fatal` makes a server that would have to compile fail instead. `minimum_driver` and `maximum_driver` bound
    the Neuron driver of the node's AMI that the line's runtime is known to run on, None where no bound is known.
    """

    name: str
    tag: str
    sdk: str
    runtime: str
    families: frozenset[str]
    support: Support
    support_note: str
    config_flag: str
    config_key: str | None
    artifacts_variable: str
    metrics: MetricNames
    device_flag: bool = False
    environment: tuple[tuple[str, str], ...] = ()
    compile_cache_variable: str | None = None
    saves_sharded_checkpoints: bool = False
    miss_is_fatal: tuple[tuple[str, str], ...] = ()
    shutdown_timeout_flag: str | None = None
    minimum_driver: str | None = None
    maximum_driver: str | None = None

    @property
    def image(self) -> str:
        """The image reference, by a tag that does not move."""
        return f"{REPOSITORY}:{self.tag}"


_NEURON_CORE_V2 = frozenset({"inf2", "trn1", "trn1n"})
_TRN2 = frozenset({"trn2", "trn2u"})

_LINES = (
    ImageLine(
        name="v0-0.9.1",
        tag="0.9.1-neuronx-py310-sdk2.25.0-ubuntu22.04",
        sdk="2.25.0",
        runtime="2.27.23",
        families=_NEURON_CORE_V2 | _TRN2,
        support="out-of-support",
        support_note="the V0 engine ended with SDK 2.27",
        config_flag="--override-neuron-config",
        config_key=None,
        artifacts_variable="NEURON_COMPILED_ARTIFACTS",
        compile_cache_variable="NEURON_COMPILE_CACHE_URL",
        saves_sharded_checkpoints=True,
        metrics=_V0_METRICS,
        device_flag=True,
        environment=(("VLLM_NEURON_FRAMEWORK", "neuronx-distributed-inference"),),
    ),
    ImageLine(
        name="nxdi-0.13",
        tag="0.13.0-neuronx-py312-sdk2.28.0-ubuntu24.04",
        sdk="2.28.0",
        runtime="2.30",
        families=_NEURON_CORE_V2 | _TRN2,
        support="supported",
        support_note="the last line that AWS states for Inferentia2 and Trainium1 without contradiction",
        config_flag="--additional-config",
        config_key="override_neuron_config",
        artifacts_variable="NEURON_COMPILED_ARTIFACTS",
        compile_cache_variable="NEURON_COMPILE_CACHE_URL",
        saves_sharded_checkpoints=True,
        metrics=_V1_METRICS,
        # Driver 2.29 refuses runtimes older than 2.33 (known issue of SDK 2.31).
        maximum_driver="2.28",
    ),
    ImageLine(
        name="nxdi-0.16",
        tag="0.16.0-neuronx-py312-sdk2.31.1-ubuntu24.04",
        sdk="2.31.1",
        runtime="2.33",
        families=_NEURON_CORE_V2 | _TRN2,
        support="contradicted",
        support_note="release notes of SDK 2.29 say Trainium2 and newer, the container index still lists trn1 and inf2",
        config_flag="--additional-config",
        config_key="override_neuron_config",
        artifacts_variable="NEURON_COMPILED_ARTIFACTS",
        compile_cache_variable="NEURON_COMPILE_CACHE_URL",
        saves_sharded_checkpoints=True,
        metrics=_V1_METRICS,
        minimum_driver="2.27",
    ),
    ImageLine(
        name="plugin-0.24",
        tag="0.24.0.1.1.0-neuronx-py313-sdk2.32.0-ubuntu24.04",
        sdk="2.32.0",
        runtime="2.34.10",
        families=_TRN2,
        support="supported",
        support_note="the vLLM Neuron plugin, labelled Beta; Trainium2 and newer only",
        config_flag="--additional-config",
        config_key="neuron_config",
        artifacts_variable="VLLM_CACHE_ROOT",
        miss_is_fatal=(("VLLM_NEURON_DISABLE_WARMUP_COMPILE", "1"),),
        metrics=_V1_METRICS,
        shutdown_timeout_flag="--shutdown-timeout",
        minimum_driver="2.27",
    ),
)

# NxD Inference's setting for pre-sharded checkpoints, and where it then writes and reads the weights of each rank
# (NeuronApplicationBase.shard_weights and load_weights, alike in its releases of SDK 2.25 to 2.31).
SAVE_SHARDED_CHECKPOINT = "save_sharded_checkpoint"
_RANK_FILE = "weights/tp{rank}_sharded_checkpoint.safetensors"
# Settings of the compiler that follow from `Model.sharded_checkpoint`. With the second, the compiler writes no shards.
SHARDING_KEYS = (SAVE_SHARDED_CHECKPOINT, "skip_sharding")

# What is known beside the lines above, for images that others chose: vLLM versions as (major, minor).
V1_MINIMUM_VERSION = (0, 11)
PLUGIN_MINIMUM_VERSION = (0, 21)
# Trainium2 and newer, ultra servers (trn2u) and families to come (trn3...) included.
PLUGIN_FAMILY_PREFIXES = ("trn2", "trn3")
_NEURON_FAMILY_PREFIXES = ("inf", "trn")

_NEURON_VLLM_REPOSITORY = re.compile(r"vllm.*neuron|neuron.*vllm")
_NEURON_TAG_MARK = "-neuronx-"
_TAG_VERSION = re.compile(r"v?(?P<major>\d+)\.(?P<minor>\d+)(?![0-9])", re.ASCII)

IMAGE_LINES: Mapping[str, ImageLine] = MappingProxyType({line.name: line for line in _LINES})


def image_line(name: str) -> ImageLine:
    """The image line of that name; ImpossibleInputError, naming the known ones, if there is none."""
    try:
        return IMAGE_LINES[name]
    except KeyError:
        raise ImpossibleInputError(f"found {name!r}; known image lines: {', '.join(IMAGE_LINES)}") from None


def lines_for(family: str) -> tuple[str, ...]:
    """Names of the lines that run on an instance family."""
    return tuple(line.name for line in _LINES if family in line.families)


@dataclass(frozen=True)
class ImageReference:
    """An image reference in its parts; `tag` and `digest` are None where it has none."""

    repository: str
    tag: str | None
    digest: str | None


def parse_reference(text: str) -> ImageReference:
    """Read a reference such as `public.ecr.aws/neuron/image:tag@sha256:...`; any text has a reading."""
    name, _, digest = text.partition("@")
    # A colon before the last slash belongs to the registry's port.
    path, slash, last = name.rpartition("/")
    repository, _, tag = last.partition(":")
    return ImageReference(path + slash + repository, tag or None, digest or None)


def neuron_vllm_version(reference: ImageReference) -> tuple[int, int] | None:
    """Major and minor version of vLLM in an image of vLLM for Neuron, whatever the registry; None if it is not one.

    Tags read `<vllm>-neuronx-<python>-sdk<version>-<system>`; without a tag the version is not known.
    """
    repository, tag = reference.repository.lower(), reference.tag or ""
    is_neuron = _NEURON_VLLM_REPOSITORY.search(repository) or ("vllm" in repository and _NEURON_TAG_MARK in tag)
    match = _TAG_VERSION.match(tag)
    return (int(match["major"]), int(match["minor"])) if is_neuron and match else None


def lacks_plugin_support(family: str) -> bool:
    """Whether an instance family has Neuron chips on which the vLLM Neuron plugin does not run."""
    return family.startswith(_NEURON_FAMILY_PREFIXES) and not family.startswith(PLUGIN_FAMILY_PREFIXES)


def support_doubt(version: tuple[int, int], families: Iterable[str]) -> str | None:
    """What speaks against a version of vLLM for Neuron on these instance families; None if nothing that is known."""
    if version < V1_MINIMUM_VERSION:
        return f"vLLM {version[0]}.{version[1]} is out of support: {IMAGE_LINES['v0-0.9.1'].support_note}"
    for line in _LINES:
        doubtful = sorted(_NEURON_CORE_V2.intersection(families)) if line.support == "contradicted" else []
        if doubtful and neuron_vllm_version(parse_reference(line.image)) == version:
            return f"the support of line {line.name} on {', '.join(doubtful)} is contradicted: {line.support_note}"
    return None


def compiler_settings(line: ImageLine, model: Model, neuron_config: Mapping[str, object]) -> dict[str, object]:
    """The compiler settings of a model: those stated, and what follows from the model.

    ImpossibleInputError for a pre-sharded checkpoint on a line that has none.
    """
    if not model.sharded_checkpoint:
        return dict(neuron_config)
    if not line.saves_sharded_checkpoints:
        raise ImpossibleInputError(f"found a sharded checkpoint for line {line.name}, which cannot save one")
    return {**neuron_config, SAVE_SHARDED_CHECKPOINT: True}


def rank_files(model: Model) -> tuple[str, ...]:
    """Files below the compiled graphs that hold the weights, one a tensor-parallel rank; none if sharded at load."""
    ranks = range(model.tensor_parallel) if model.sharded_checkpoint else ()
    return tuple(_RANK_FILE.format(rank=rank) for rank in ranks)


def model_arguments(
    line: ImageLine, model: Model, neuron_config: Mapping[str, object], model_path: str
) -> tuple[str, ...]:
    """The arguments that shape the compiled graph: alike for compiling and serving, or the artifacts do not load.

    `neuron_config` holds compiler settings such as `enable_bucketing`, more follow from the model. `model_path` is the
    directory that holds the weights at the pinned revision; clients still name the model by its id.
    """
    arguments = [
        f"--model={model_path}",
        f"--served-model-name={model.id}",
        f"--dtype={model.dtype}",
        f"--max-model-len={model.max_model_len}",
        f"--max-num-seqs={model.max_num_seqs}",
        f"--tensor-parallel-size={model.tensor_parallel}",
    ]
    if line.device_flag:
        arguments.append("--device=neuron")
    settings = compiler_settings(line, model, neuron_config)
    if settings:
        nested = settings if line.config_key is None else {line.config_key: settings}
        arguments.append(f"{line.config_flag}={json.dumps(nested, sort_keys=True, separators=(',', ':'))}")
    return tuple(arguments)


def server_arguments(line: ImageLine, shutdown_timeout_seconds: int | None) -> tuple[str, ...]:
    """The arguments of the server alone; the timeout is for lines that finish requests after SIGTERM."""
    if line.shutdown_timeout_flag is None or shutdown_timeout_seconds is None:
        return (f"--port={PORT}",)
    return (f"--port={PORT}", f"{line.shutdown_timeout_flag}={shutdown_timeout_seconds}")
