"""Model servers."""

from pydantic import Field, JsonValue

from components.settings.autoscaling import AutoscalingSettings
from components.settings.shapes import Commit, DnsLabel, SecretArn, Section
from neuron.artifact import OnMiss
from neuron.metrics import DEFAULT_FIRST_TOKEN_SLO_SECONDS
from neuron.model import DataType
from neuron.rollout import DEFAULT_LONGEST_REQUEST_SECONDS


class ModelSettings(Section):
    """The model; `checkpointGb` (decimal gigabytes on disk) may be left out for models that neuron.model knows.

    With `shardedCheckpoint` the weights are sharded once, when the model is compiled, and not by each server at load.
    """

    id: str = Field(min_length=1)
    revision: Commit
    checkpoint_gb: float | None = Field(default=None, gt=0)
    max_model_len: int = Field(ge=1)
    max_num_seqs: int = Field(ge=1)
    tensor_parallel: int = Field(ge=1)
    dtype: DataType = "bfloat16"
    sharded_checkpoint: bool = False
    cold_start_seconds: int | None = Field(default=None, ge=1)


class ServingSettings(Section):
    """One model server: what it serves, where, how many, and how long its longest request takes.

    `firstTokenSloSeconds` is the objective for 95 % of requests; alerts measure against it.
    `onMiss` says what a pod does that does not find its model published; left out, it follows from the model cache.
    `hfTokenSecret` names a Secret that exists, `hfTokenSecretArn` a secret of AWS Secrets Manager whose whole value is
    the Hugging Face token. `allowFrom` names namespaces beside the server's own whose pods may call it.
    With `autoscaling`, `replicas` is the fewest that there are.
    """

    name: DnsLabel
    namespace: DnsLabel = "vllm"
    image_line: str
    node_group: str
    replicas: int = Field(ge=1)
    model: ModelSettings
    neuron_config: dict[str, JsonValue] = Field(default_factory=dict)
    longest_request_seconds: int = Field(default=DEFAULT_LONGEST_REQUEST_SECONDS, ge=1)
    first_token_slo_seconds: float = Field(default=DEFAULT_FIRST_TOKEN_SLO_SECONDS, gt=0)
    memory_gib: int | None = Field(default=None, ge=1)
    hf_token_secret: DnsLabel | None = None
    hf_token_secret_arn: SecretArn | None = None
    allow_from: tuple[DnsLabel, ...] = Field(default=(), strict=False)
    on_miss: OnMiss | None = None
    autoscaling: AutoscalingSettings | None = None

    @property
    def most_replicas(self) -> int:
        """The replicas that there are at the largest: nodes and quota must have room for all of them."""
        return self.replicas if self.autoscaling is None else self.autoscaling.max_replicas
