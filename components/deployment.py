"""Builds the workloads of a model server: pure functions from a plan to manifests; nothing is registered here."""

from dataclasses import dataclass

import pulumi
import pulumi_kubernetes.apps.v1 as apps
import pulumi_kubernetes.batch.v1 as batch
import pulumi_kubernetes.core.v1 as core
import pulumi_kubernetes.policy.v1 as policy

from components import programs
from components.hf_token import NO_TOKEN, HfToken
from neuron import images
from neuron.artifact import Artifact, OnMiss
from neuron.images import ImageLine
from neuron.instances import CHIP_RESOURCE, INSTANCE_TYPE_LABEL, InstanceType
from neuron.memory import SHARED_MEMORY_GIB
from neuron.model import Model, storage_gib
from neuron.placement import cpu_request_millicores
from neuron.rollout import Probe, Rollout
from neuron.scaling import Scaling
from neuron.startup import StartUp

# The pod's own disk: below it, `model` (weights) and `artifacts` (compiled graphs), as the programs lay them out.
_LOCAL_PATH = "/model"
MODEL_PATH = f"{_LOCAL_PATH}/model"
_ARTIFACTS_PATH = f"{_LOCAL_PATH}/artifacts"
_CACHE_PATH = "/model-cache"
# Where servers should not all be at once: a node dies more often than a zone.
_SPREAD_OVER = ("topology.kubernetes.io/zone", "kubernetes.io/hostname")
# Karpenter does not move a pod that takes minutes to start; nothing else reads it.
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
# A publisher that dies resumes; one that fails this often has a reason that another try does not mend.
PUBLISH_RETRIES = 3


@dataclass(frozen=True)
class ServingPlan:
    """Everything about one model server that is decided before anything is registered.

    `scheduler` is the name of the scheduler that places the pods, None for the cluster's own.
    `token_secret` names a Secret that exists already, `token_secret_arn` one of AWS Secrets Manager; both are None
    where the stack's own token is used, or none at all. `callers` are namespaces beside its own whose pods may call it;
    with `called_from_outside` a load balancer sends clients' connections straight to the pods.
    `publishes` says whether a Job publishes the artifact before the pods look for it.
    `scaling` is None where the number of replicas is fixed.
    """

    name: str
    namespace: str
    replicas: int
    line: ImageLine
    model: Model
    instance: InstanceType
    chips: int
    memory_gib: int
    artifact: Artifact
    model_arguments: tuple[str, ...]
    on_miss: OnMiss
    publishes: bool
    start: StartUp
    token_secret: str | None
    rollout: Rollout
    scheduler: str | None = None
    token_secret_arn: str | None = None
    callers: tuple[str, ...] = ()
    called_from_outside: bool = False
    scaling: Scaling | None = None

    @property
    def most_replicas(self) -> int:
        """The replicas that there are at the largest."""
        return self.replicas if self.scaling is None else self.scaling.maximum

    @property
    def downloads(self) -> bool:
        """Whether a server's own pod may have to download and compile; a published model needs neither."""
        return self.on_miss == "compile"


@dataclass(frozen=True)
class References:
    """Names of the objects that the pods refer to.

    `publisher_account` is None where nothing is published, `cache_claim` for a stack without a model cache. Only pods
    that download get the token.
    """

    service_account: pulumi.Input[str]
    publisher_account: pulumi.Input[str] | None
    programs: pulumi.Input[str]
    cache_claim: pulumi.Input[str] | None
    token: HfToken = NO_TOKEN


def selector(plan: ServingPlan) -> dict[str, str]:
    """The labels that select the plan's pods; they never change while the Deployment lives."""
    return {"app.kubernetes.io/name": "vllm", "app.kubernetes.io/instance": plan.name}


def publisher_selector(plan: ServingPlan) -> dict[str, str]:
    """The labels that select the publisher's pods, which must not be selected as servers."""
    return {**selector(plan), "app.kubernetes.io/name": "model-publisher"}


def labels(plan: ServingPlan, component: str = "server") -> dict[str, str]:
    """The labels of every object of the plan: the selector's instance, and what the object is part of."""
    return {
        **selector(plan),
        "app.kubernetes.io/component": component,
        "app.kubernetes.io/part-of": "neuron-serving",
    }


def deployment_spec(plan: ServingPlan, references: References) -> apps.DeploymentSpecArgsDict:
    """The server's Deployment; where something scales it, the replicas are not ours to state."""
    update = plan.rollout.update
    return {
        **({} if plan.scaling else {"replicas": plan.replicas}),
        "selector": {"match_labels": selector(plan)},
        "strategy": {
            "type": "RollingUpdate",
            "rolling_update": {"max_surge": update.max_surge, "max_unavailable": update.max_unavailable},
        },
        "progress_deadline_seconds": plan.rollout.progress_deadline_seconds,
        "template": {
            "metadata": {"labels": labels(plan), "annotations": {DO_NOT_DISRUPT: "true"}},
            "spec": {
                **_pod_spec(plan, references, _load_token(plan, references), read_only_cache=True),
                "service_account_name": references.service_account,
                "termination_grace_period_seconds": plan.rollout.drain.grace_seconds,
                "topology_spread_constraints": [_spread(plan, key) for key in _SPREAD_OVER],
                "init_containers": [_load_container(plan, references)],
                "containers": [_server_container(plan)],
            },
        },
    }


def disruption_budget_spec(plan: ServingPlan) -> policy.PodDisruptionBudgetSpecArgsDict:
    """One server at a time may be drained, a single one too: a budget that lets none go would hold its node."""
    return {"selector": {"match_labels": selector(plan)}, "max_unavailable": 1}


def _spread(plan: ServingPlan, topology_key: str) -> core.TopologySpreadConstraintArgsDict:
    """A wish, not a demand: chips are where they are, and a zone that has none must not hold a pod back."""
    return {
        "max_skew": 1,
        "topology_key": topology_key,
        "when_unsatisfiable": "ScheduleAnyway",
        "label_selector": {"match_labels": selector(plan)},
    }


def publish_job_spec(plan: ServingPlan, references: References) -> batch.JobSpecArgsDict:
    """The Job that publishes the plan's artifact."""
    return {
        "backoff_limit": PUBLISH_RETRIES,
        "template": {
            "metadata": {"labels": {**labels(plan, "publisher"), **publisher_selector(plan)}},
            "spec": {
                **_pod_spec(plan, references, references.token, read_only_cache=False),
                "service_account_name": references.publisher_account,
                "restart_policy": "OnFailure",
                "containers": [_publish_container(plan, references)],
            },
        },
    }


def _pod_spec(
    plan: ServingPlan, references: References, token: HfToken, *, read_only_cache: bool
) -> core.PodSpecArgsDict:
    """What server and publisher have in common: where they run, and what they mount.

    Without service links: a Service named `vllm` would put a variable VLLM_PORT into every pod of its namespace, which
    vLLM takes for a setting of its own.
    """
    cache: core.VolumeArgsDict = {"name": "model-cache", "empty_dir": {}}
    if references.cache_claim is not None:
        claim: core.PersistentVolumeClaimVolumeSourceArgsDict = {
            "claim_name": references.cache_claim,
            "read_only": read_only_cache,
        }
        cache = {"name": "model-cache", "persistent_volume_claim": claim}
    return {
        **({"scheduler_name": plan.scheduler} if plan.scheduler else {}),
        "automount_service_account_token": False,
        "enable_service_links": False,
        "node_selector": {INSTANCE_TYPE_LABEL: plan.instance.name},
        "tolerations": [{"key": CHIP_RESOURCE, "operator": "Exists", "effect": "NoSchedule"}],
        "security_context": {"seccomp_profile": {"type": "RuntimeDefault"}},
        "volumes": [
            {"name": "local", "empty_dir": {"size_limit": f"{storage_gib(plan.model)}Gi"}},
            {"name": "shared-memory", "empty_dir": {"medium": "Memory", "size_limit": f"{SHARED_MEMORY_GIB}Gi"}},
            {"name": "programs", "config_map": {"name": references.programs, "items": programs.volume_items()}},
            cache,
            *token.volumes(),
        ],
    }


def _load_container(plan: ServingPlan, references: References) -> core.ContainerArgsDict:
    """Brings weights and compiled graphs to the pod's disk; on a miss it compiles them, or says why not."""
    token = _load_token(plan, references)
    return {
        **_program(plan, "load", [f"--on-miss={plan.on_miss}"], token),
        "volume_mounts": _program_mounts(token, read_only_cache=True),
    }


def _load_token(plan: ServingPlan, references: References) -> HfToken:
    """A pod that finds its model published asks Hugging Face nothing."""
    return references.token if plan.downloads else NO_TOKEN


def _publish_container(plan: ServingPlan, references: References) -> core.ContainerArgsDict:
    return {
        **_program(plan, "publish", [], references.token),
        "volume_mounts": _program_mounts(references.token, read_only_cache=False),
    }


def _program(plan: ServingPlan, name: str, options: list[str], token: HfToken) -> core.ContainerArgsDict:
    """One of the programs, with the server's own arguments: both must build the same graph."""
    artifact = f"{programs.PROGRAMS_PATH}/{programs.ARTIFACT_FILE}"
    places = [f"--artifact={artifact}", f"--cache={_CACHE_PATH}", f"--local={_LOCAL_PATH}"]
    return {
        **_common(plan),
        "name": f"model-{name}",
        "command": programs.command(name),
        "working_dir": programs.PROGRAMS_PATH,
        "args": [*places, *options, "--", *plan.model_arguments],
        "env": [*_environment(plan.line), *token.environment()],
    }


def _server_container(plan: ServingPlan) -> core.ContainerArgsDict:
    """The server is process 1, with no shell in between, so that SIGTERM reaches it. It asks Hugging Face nothing."""
    drain = plan.rollout.drain
    return {
        **_common(plan),
        "name": "server",
        "command": ["python3", "-m", "vllm.entrypoints.openai.api_server"],
        "args": [*plan.model_arguments, *images.server_arguments(plan.line, drain.shutdown_timeout_seconds)],
        "env": [*_environment(plan.line), *_server_environment(plan)],
        "ports": [{"name": "http", "container_port": images.PORT}],
        "startup_probe": _probe(plan.rollout.startup),
        "readiness_probe": _probe(plan.rollout.readiness),
        "liveness_probe": _probe(plan.rollout.liveness),
        "lifecycle": {"pre_stop": {"sleep": {"seconds": drain.pre_stop_seconds}}},
        "volume_mounts": _mounts(),
    }


def _common(plan: ServingPlan) -> core.ContainerArgsDict:
    return {
        "image": plan.line.image,
        "resources": _resources(plan),
        "security_context": {"allow_privilege_escalation": False, "capabilities": {"drop": ["ALL"]}},
    }


def _resources(plan: ServingPlan) -> core.ResourceRequirementsArgsDict:
    """Memory request and limit are one figure: a node that overcommits memory dies as a whole. CPU has no limit."""
    fixed = {CHIP_RESOURCE: str(plan.chips), "memory": f"{plan.memory_gib}Gi"}
    requests = {
        "cpu": f"{cpu_request_millicores(plan.chips, plan.instance)}m",
        "ephemeral-storage": f"{storage_gib(plan.model)}Gi",
    }
    return {"requests": {**fixed, **requests}, "limits": fixed}


def _environment(line: ImageLine) -> list[core.EnvVarArgsDict]:
    fixed = {**dict(line.environment), line.artifacts_variable: _ARTIFACTS_PATH}
    return [{"name": name, "value": value} for name, value in fixed.items()]


def _server_environment(plan: ServingPlan) -> list[core.EnvVarArgsDict]:
    """What the server alone gets: no network, the compiler's cache, and no compilation where a miss is fatal."""
    variables = {"HF_HUB_OFFLINE": "1"}
    if plan.line.compile_cache_variable is not None:
        variables[plan.line.compile_cache_variable] = _ARTIFACTS_PATH
    if plan.on_miss == "fail":
        variables |= dict(plan.line.miss_is_fatal)
    return [{"name": name, "value": value} for name, value in variables.items()]


def _mounts() -> list[core.VolumeMountArgsDict]:
    return [
        {"name": "local", "mount_path": _LOCAL_PATH},
        {"name": "shared-memory", "mount_path": "/dev/shm"},  # noqa: S108 - the pod's own volume
    ]


def _program_mounts(token: HfToken, *, read_only_cache: bool) -> list[core.VolumeMountArgsDict]:
    return [
        *_mounts(),
        {"name": "programs", "mount_path": programs.PROGRAMS_PATH, "read_only": True},
        {"name": "model-cache", "mount_path": _CACHE_PATH, "read_only": read_only_cache},
        *token.mounts(),
    ]


def _probe(probe: Probe) -> core.ProbeArgsDict:
    return {
        "http_get": {"path": probe.path, "port": "http"},
        "period_seconds": probe.period_seconds,
        "failure_threshold": probe.failure_threshold,
        "timeout_seconds": probe.timeout_seconds,
    }
