"""The shape of a stack file, as pydantic models. What its values mean together is in checks.py."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from neuron.artifact import OnMiss
from neuron.model import DataType
from neuron.rollout import DEFAULT_LONGEST_REQUEST_SECONDS


def _matching(pattern: str, allowed: str) -> AfterValidator:
    """A validator that says what is allowed in words, where pydantic would print the pattern."""

    def validate(value: str) -> str:
        if re.fullmatch(pattern, value) is None:
            raise PydanticCustomError("not_allowed", allowed)
        return value

    return AfterValidator(validate)


# https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#dns-label-names
DnsLabel = Annotated[
    str, _matching(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", "lower-case letters, digits and dashes, at most 63 of them")
]
# A branch or tag moves, and with it the weights behind a cache key.
Commit = Annotated[str, _matching(r"[0-9a-f]{40}", "a commit of the model's repository, 40 hexadecimal digits")]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, strict=True)


class ClusterSettings(_Section):
    """Where to deploy. `kubeconfig` is a path, relative to the project, of a file that the cluster's maker wrote."""

    mode: Literal["kubeconfig"]
    kubeconfig: str = Field(min_length=1)
    context: str | None = None


class NodeGroupSettings(_Section):
    """Neuron nodes that exist already; `nodes` is the most that there may be."""

    name: DnsLabel
    instance_type: str
    nodes: int = Field(ge=1)


class ModelSettings(_Section):
    """The model; `checkpointGb` (decimal gigabytes on disk) may be left out for models that neuron.model knows."""

    id: str = Field(min_length=1)
    revision: Commit
    checkpoint_gb: float | None = Field(default=None, gt=0)
    max_model_len: int = Field(ge=1)
    max_num_seqs: int = Field(ge=1)
    tensor_parallel: int = Field(ge=1)
    dtype: DataType = "bfloat16"
    cold_start_seconds: int | None = Field(default=None, ge=1)


class ModelCacheSettings(_Section):
    """Where published models are kept: a directory of the nodes, or an S3 bucket through Mountpoint.

    `bucket` may be left out: vllm-models-cache-<account>. `retain` keeps the bucket when the stack is destroyed.
    """

    backend: Literal["hostpath", "s3"]
    path: str = "/var/lib/neuron-serving/models"
    bucket: str | None = None
    region: str | None = None
    cluster_name: str | None = None
    retain: bool = True


class ServingSettings(_Section):
    """One model server: what it serves, where, how many, and how long its longest request takes.

    `onMiss` says what a pod does that does not find its model published; left out, it follows from the model cache.
    """

    name: DnsLabel
    namespace: DnsLabel = "vllm"
    image_line: str
    node_group: str
    replicas: int = Field(ge=1)
    model: ModelSettings
    neuron_config: dict[str, JsonValue] = Field(default_factory=dict)
    longest_request_seconds: int = Field(default=DEFAULT_LONGEST_REQUEST_SECONDS, ge=1)
    memory_gib: int | None = Field(default=None, ge=1)
    hf_token_secret: DnsLabel | None = None
    on_miss: OnMiss | None = None


class Settings(_Section):
    """A whole stack file."""

    cluster: ClusterSettings
    node_groups: tuple[NodeGroupSettings, ...] = Field(strict=False)
    serving: tuple[ServingSettings, ...] = Field(strict=False)
    model_cache: ModelCacheSettings | None = None

    def node_group(self, name: str) -> NodeGroupSettings | None:
        """The node group of that name, None if the stack file has none."""
        return next((group for group in self.node_groups if group.name == name), None)
