"""The shape of a stack file, as pydantic models. What its values mean together is in checks.py."""

import re
from ipaddress import IPv4Network
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from neuron.artifact import OnMiss
from neuron.model import DataType
from neuron.quota import MAX_UNAVAILABLE_CEILING, Purchase, UpdateStrategy
from neuron.rollout import DEFAULT_LONGEST_REQUEST_SECONDS


def _matching(pattern: str, allowed: str) -> AfterValidator:
    """A validator that says what is allowed in words, where pydantic would print the pattern."""

    def validate(value: str) -> str:
        if re.fullmatch(pattern, value) is None:
            raise PydanticCustomError("not_allowed", allowed)
        return value

    return AfterValidator(validate)


# An example is what configuration.py puts in the place of a faulty value, to go on looking for other faults.
# https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#dns-label-names
DnsLabel = Annotated[
    str,
    _matching(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", "lower-case letters, digits and dashes, at most 63 of them"),
    Field(examples=["example"]),
]
# A branch or tag moves, and with it the weights behind a cache key.
Commit = Annotated[
    str,
    _matching(r"[0-9a-f]{40}", "a commit of the model's repository, 40 hexadecimal digits"),
    Field(examples=["0" * 40]),
]
KubernetesMinor = Annotated[
    str,
    _matching(r"1\.[0-9]{2}", 'a Kubernetes minor version in quotes, such as "1.36"'),
    Field(examples=["1.36"]),
]
SubnetId = Annotated[str, _matching(r"subnet-[0-9a-f]+", "a subnet's id, such as subnet-0a1b2c3d")]
ReservationId = Annotated[str, _matching(r"cr-[0-9a-f]+", "a capacity reservation's id, such as cr-0a1b2c3d")]
PrincipalArn = Annotated[
    str, _matching(r"arn:aws[-a-z]*:iam::[0-9]{12}:(role|user)/\S+", "the ARN of an IAM role or user")
]
TaggedImage = Annotated[
    str, _matching(r"\S+:v1\.[0-9]{2}\S*", "an image with a tag that begins with its version, v1.36...")
]
OciUrl = Annotated[str, _matching(r"oci://\S+", "an OCI registry and path, such as oci://registry.example.com/charts")]


def _cidr(value: str) -> str:
    try:
        IPv4Network(value)
    except ValueError:
        raise PydanticCustomError("not_allowed", "an IPv4 network, such as 203.0.113.0/24") from None
    return value


Cidr = Annotated[str, AfterValidator(_cidr)]

# The root volume of the AMI's own snapshot.
MINIMUM_DISK_GIB = 20


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, strict=True)


class _ByNames(_Section):
    """A section whose keys are names that others gave, with dashes."""

    model_config = ConfigDict(alias_generator=lambda name: name.replace("_", "-"))

    def stated(self) -> dict[str, Any]:
        """The keys that the stack file sets, as it spells them."""
        return self.model_dump(by_alias=True, exclude_none=True)


class AddonsSettings(_ByNames):
    """EKS add-ons: a version such as v1.20.4-eksbuild.2, or `default` for EKS's own choice."""

    vpc_cni: str | None = None
    kube_proxy: str | None = None
    eks_pod_identity_agent: str | None = None
    coredns: str | None = None
    metrics_server: str | None = None
    aws_mountpoint_s3_csi_driver: str | None = None


class QuotasSettings(_ByNames):
    """The account's quotas in vCPUs, under the keys that the policy pack's rule vcpu-quota takes too."""

    trn: int | None = Field(default=None, ge=0)
    inf: int | None = Field(default=None, ge=0)
    trn_spot: int | None = Field(default=None, ge=0)
    inf_spot: int | None = Field(default=None, ge=0)


class SystemNodesSettings(_Section):
    """Nodes without chips, for the add-ons and controllers of a cluster made here."""

    instance_type: str = "m7i.large"
    nodes: int = Field(default=2, ge=1)


class KubeconfigCluster(_Section):
    """Any cluster, by a file that its maker wrote; `kubeconfig` is a path, relative to the project."""

    mode: Literal["kubeconfig"]
    kubeconfig: str = Field(min_length=1)
    context: str | None = None


class ExistingCluster(_Section):
    """An EKS cluster that others made, by its name in the region `aws:region`.

    Only the add-ons listed in `addons` are installed, by version or `default`.
    """

    mode: Literal["existing"]
    name: str = Field(min_length=1)
    addons: AddonsSettings = AddonsSettings()


class CreatedCluster(_Section):
    """An EKS cluster made here, in a VPC made here (`vpcCidr`) or in `subnetIds`.

    `administrators` are IAM principals beside the one that deploys. `addons` pins versions, the others are EKS's
    defaults for the Kubernetes version.
    """

    mode: Literal["create"]
    version: KubernetesMinor
    public_access_cidrs: tuple[Cidr, ...] = Field(strict=False)
    vpc_cidr: Cidr | None = None
    subnet_ids: tuple[SubnetId, ...] = Field(default=(), strict=False)
    administrators: tuple[PrincipalArn, ...] = Field(default=(), strict=False)
    oidc_provider: bool = False
    addons: AddonsSettings = AddonsSettings()
    system_nodes: SystemNodesSettings = SystemNodesSettings()


class StackCluster(_Section):
    """The cluster of another stack of this program, which exports its kubeconfig; `stack` as in org/project/stack."""

    mode: Literal["stack"]
    stack: str = Field(min_length=1)


ClusterSettings = Annotated[
    KubeconfigCluster | ExistingCluster | CreatedCluster | StackCluster, Field(discriminator="mode")
]


class CreateSettings(_Section):
    """How a node group is made and bought.

    `amiRelease` pins the AMI, by version (1.36.2-20260625) or date (20260625); without it the one that EKS recommends
    now is taken. `minNodes`
    is how far an autoscaler may shrink the group, all of it by default. `MINIMAL` updates stop old nodes first and
    need no quota beyond the group's own; `DEFAULT` starts new ones first.
    """

    ami_release: str | None = None
    min_nodes: int | None = Field(default=None, ge=0)
    purchase: Purchase = "on-demand"
    reservation_id: ReservationId | None = None
    disk_gib: int = Field(default=100, ge=MINIMUM_DISK_GIB)
    disk_throughput_mib_per_second: int = Field(default=600, ge=125, le=1000)
    update_strategy: UpdateStrategy = "MINIMAL"
    max_unavailable: int = Field(default=1, ge=1, le=MAX_UNAVAILABLE_CEILING)
    subnet_ids: tuple[SubnetId, ...] = Field(default=(), strict=False)


class NodeGroupSettings(_Section):
    """Neuron nodes; `nodes` is the most that there may be. Without `create` the group exists already."""

    name: DnsLabel
    instance_type: str
    nodes: int = Field(ge=1, examples=[1000])
    create: CreateSettings | None = None


class AcceleratorSettings(_Section):
    """What the Neuron Helm chart installs. Leave the section out where the cluster has it already.

    `devices` is how pods get chips: the two ways exclude each other. The scheduler extension comes by itself (`auto`)
    where a pod needs it; `kubeSchedulerImage` is the scheduler that it extends, of the cluster's minor version. The
    node problem detector reports broken chips (`detect`) and has their nodes replaced (`recover`).
    """

    devices: Literal["device-plugin", "dra"] = "device-plugin"
    scheduler_extension: Literal["auto", "always"] = "auto"
    kube_scheduler_image: TaggedImage | None = None
    node_problem_detector: Literal["none", "detect", "recover"] = "recover"


class ChartsSettings(_Section):
    """Where charts come from instead of their own repositories: a folder of charts, or an OCI mirror."""

    folder: str | None = Field(default=None, min_length=1)
    mirror: OciUrl | None = None


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
    """A whole stack file.

    `quotas` declares the account's vCPU quotas; a stack that needs more at its largest is refused here,
    before AWS refuses its nodes.
    """

    cluster: ClusterSettings
    node_groups: tuple[NodeGroupSettings, ...] = Field(strict=False)
    serving: tuple[ServingSettings, ...] = Field(default=(), strict=False)
    model_cache: ModelCacheSettings | None = None
    accelerator: AcceleratorSettings | None = None
    charts: ChartsSettings = ChartsSettings()
    quotas: QuotasSettings = QuotasSettings()

    def node_group(self, name: str) -> NodeGroupSettings | None:
        """The node group of that name, None if the stack file has none."""
        return next((group for group in self.node_groups if group.name == name), None)

    @property
    def existing_node_groups(self) -> tuple[NodeGroupSettings, ...]:
        """The node groups that others made."""
        return tuple(group for group in self.node_groups if group.create is None)
