"""The identity of a published model: a key over every input that changes its compiled graph or its weights."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from neuron import differences as naming
from neuron.errors import ImpossibleInputError
from neuron.images import ImageLine, compiler_settings, rank_files
from neuron.instances import DEFAULT_LOGICAL_CORE_SIZE, InstanceType
from neuron.model import Model

# What a pod does when its artifact is not published: compile for itself, or refuse to start and say why.
OnMiss = Literal["compile", "fail"]

# Part of the key: a new layout of the cache makes new artifacts, it does not misread the old.
LAYOUT = 1

# 80 bits: short enough for names, far from any collision among the configurations of one model.
KEY_DIGITS = 20

# Names below a directory that holds both; "@" parts the model from its revision, so neither may have it.
_MODEL_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII)
_REVISION = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)


@dataclass(frozen=True)
class Artifact:
    """Weights and compiled graphs of one configuration. `inputs` are JSON values by name, nested where they are.

    `artifacts_variable` is the environment variable that points the image line's server at the compiled graphs.
    `rank_files` lie among those and hold each rank's weights; without any, the server shards the weights at load.
    """

    model: str
    revision: str
    inputs: Mapping[str, object]
    artifacts_variable: str
    rank_files: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The first digits of the SHA-256 of the inputs' canonical JSON."""
        return hashlib.sha256(_canonical_json(self.inputs).encode()).hexdigest()[:KEY_DIGITS]

    @property
    def prefix(self) -> str:
        """Where it lies in the cache: a path without a leading slash, with a trailing one."""
        return f"models/{self.model}@{self.revision}/{self.key}/"

    def description(self) -> str:
        """What the programs of containers/model_artifact read: JSON that depends on nothing but this artifact."""
        fields = {
            "model": self.model,
            "revision": self.revision,
            "key": self.key,
            "prefix": self.prefix,
            "artifacts_variable": self.artifacts_variable,
            "rank_files": self.rank_files,
            "inputs": self.inputs,
        }
        return json.dumps(fields, sort_keys=True, indent=2) + "\n"


def artifact(
    line: ImageLine,
    model: Model,
    neuron_config: Mapping[str, object],
    instance: InstanceType,
    logical_core_size: int | None = None,
) -> Artifact:
    """The artifact of a model served so; ImpossibleInputError for an id or revision that no path can hold.

    The generation of the NeuronCores counts, not the instance type: trn1 and inf2 share compiled graphs (src).
    `logical_core_size` is the number of physical cores in a logical one (LNC), None for the generation's default.
    """
    _check("model id", model.id, _MODEL_ID)
    _check("revision", model.revision, _REVISION)
    inputs: dict[str, object] = {
        "layout": LAYOUT,
        "model": model.id,
        "revision": model.revision,
        "dtype": model.dtype,
        "tensor_parallel": model.tensor_parallel,
        "max_model_len": model.max_model_len,
        "max_num_seqs": model.max_num_seqs,
        "neuron_config": compiler_settings(line, model, neuron_config),
        "image_line": line.name,
        # Names vLLM's version and, through the SDK, the compiler's.
        "image_tag": line.tag,
        "sdk": line.sdk,
        "runtime": line.runtime,
        "environment": dict(line.environment),
        "core_generation": instance.core_generation,
        "logical_core_size": logical_core_size or DEFAULT_LOGICAL_CORE_SIZE[instance.core_generation],
    }
    _canonical_json(inputs)
    return Artifact(model.id, model.revision, inputs, line.artifacts_variable, rank_files(model))


def differences(wanted: Artifact, found: Artifact) -> tuple[str, ...]:
    """The inputs in which two artifacts differ, one phrase each; empty if they are the same artifact."""
    return naming.differences(wanted.inputs, found.inputs)


def _canonical_json(inputs: Mapping[str, object]) -> str:
    try:
        return json.dumps(inputs, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ImpossibleInputError(f"neuron_config is not JSON: {error}") from None


def _check(what: str, value: str, allowed: re.Pattern[str]) -> None:
    if allowed.fullmatch(value) is None:
        raise ImpossibleInputError(f"found {what} {value!r}; allowed: letters, digits, dots, dashes and underscores")
