"""Builds the Deployment of a model server: pure functions from a plan to a manifest; nothing is registered here."""

from dataclasses import dataclass
from pathlib import Path

import pulumi
import pulumi_kubernetes.apps.v1 as apps
import pulumi_kubernetes.core.v1 as core

from components.namespace import TOKEN_SECRET_KEY
from neuron import images
from neuron.images import ImageLine
from neuron.instances import CHIP_RESOURCE, INSTANCE_TYPE_LABEL, InstanceType
from neuron.memory import SHARED_MEMORY_GIB
from neuron.model import Model, storage_gib
from neuron.placement import cpu_request_millicores
from neuron.rollout import Probe, Rollout

PREPARE_PROGRAM = Path(__file__).parent.parent / "containers" / "prepare_model.py"

_CACHE_PATH = "/cache"
_PROGRAMS_PATH = "/programs"


@dataclass(frozen=True)
class ServingPlan:
    """Everything about one model server that is decided before anything is registered.

    `scheduler` is the name of the scheduler that places the pods, None for the cluster's own.
    `token_secret` names a Secret that exists already, None where the stack's own token is used, or none at all.
    """

    name: str
    namespace: str
    replicas: int
    line: ImageLine
    model: Model
    instance: InstanceType
    chips: int
    memory_gib: int
    model_arguments: tuple[str, ...]
    token_secret: str | None
    rollout: Rollout
    scheduler: str | None = None


@dataclass(frozen=True)
class References:
    """Names of the objects that the pods refer to; `token_secret` is None for a model that needs no token."""

    service_account: pulumi.Input[str]
    programs: pulumi.Input[str]
    token_secret: pulumi.Input[str] | None


def selector(plan: ServingPlan) -> dict[str, str]:
    """The labels that select the plan's pods; they never change while the Deployment lives."""
    return {"app.kubernetes.io/name": "vllm", "app.kubernetes.io/instance": plan.name}


def labels(plan: ServingPlan) -> dict[str, str]:
    """The labels of every object of the plan: the selector and what it is part of."""
    return {**selector(plan), "app.kubernetes.io/component": "server", "app.kubernetes.io/part-of": "neuron-serving"}


def deployment_spec(plan: ServingPlan, references: References) -> apps.DeploymentSpecArgsDict:
    """The Deployment's spec."""
    update = plan.rollout.update
    return {
        "replicas": plan.replicas,
        "selector": {"match_labels": selector(plan)},
        "strategy": {
            "type": "RollingUpdate",
            "rolling_update": {"max_surge": update.max_surge, "max_unavailable": update.max_unavailable},
        },
        "progress_deadline_seconds": plan.rollout.progress_deadline_seconds,
        "template": {"metadata": {"labels": labels(plan)}, "spec": _pod_spec(plan, references)},
    }


def _pod_spec(plan: ServingPlan, references: References) -> core.PodSpecArgsDict:
    return {
        **({"scheduler_name": plan.scheduler} if plan.scheduler else {}),
        "service_account_name": references.service_account,
        "automount_service_account_token": False,
        "node_selector": {INSTANCE_TYPE_LABEL: plan.instance.name},
        "tolerations": [{"key": CHIP_RESOURCE, "operator": "Exists", "effect": "NoSchedule"}],
        "termination_grace_period_seconds": plan.rollout.drain.grace_seconds,
        "security_context": {"seccomp_profile": {"type": "RuntimeDefault"}},
        "init_containers": [_prepare_container(plan, references)],
        "containers": [_server_container(plan, references)],
        "volumes": [
            {"name": "cache", "empty_dir": {"size_limit": f"{storage_gib(plan.model)}Gi"}},
            {"name": "shared-memory", "empty_dir": {"medium": "Memory", "size_limit": f"{SHARED_MEMORY_GIB}Gi"}},
            {"name": "programs", "config_map": {"name": references.programs}},
        ],
    }


def _prepare_container(plan: ServingPlan, references: References) -> core.ContainerArgsDict:
    """Downloads the weights and compiles, with the server's own arguments; the server then only loads."""
    return {
        **_common(plan, references),
        "name": "model-prep",
        "command": ["python3", f"{_PROGRAMS_PATH}/{PREPARE_PROGRAM.name}"],
        "args": list(plan.model_arguments),
        "volume_mounts": [*_mounts(), {"name": "programs", "mount_path": _PROGRAMS_PATH, "read_only": True}],
    }


def _server_container(plan: ServingPlan, references: References) -> core.ContainerArgsDict:
    """The server is process 1, with no shell in between, so that SIGTERM reaches it."""
    drain = plan.rollout.drain
    return {
        **_common(plan, references),
        "name": "server",
        "command": ["python3", "-m", "vllm.entrypoints.openai.api_server"],
        "args": [*plan.model_arguments, *images.server_arguments(plan.line, drain.shutdown_timeout_seconds)],
        "ports": [{"name": "http", "container_port": images.PORT}],
        "startup_probe": _probe(plan.rollout.startup),
        "readiness_probe": _probe(plan.rollout.readiness),
        "liveness_probe": _probe(plan.rollout.liveness),
        "lifecycle": {"pre_stop": {"sleep": {"seconds": drain.pre_stop_seconds}}},
        "volume_mounts": _mounts(),
    }


def _common(plan: ServingPlan, references: References) -> core.ContainerArgsDict:
    return {
        "image": plan.line.image,
        "env": _environment(plan.line, references.token_secret),
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


def _environment(line: ImageLine, token_secret: pulumi.Input[str] | None) -> list[core.EnvVarArgsDict]:
    fixed = {
        **dict(line.environment),
        "HF_HOME": f"{_CACHE_PATH}/huggingface",
        line.artifacts_variable: f"{_CACHE_PATH}/artifacts",
    }
    variables: list[core.EnvVarArgsDict] = [{"name": name, "value": value} for name, value in fixed.items()]
    if token_secret is not None:
        reference: core.EnvVarSourceArgsDict = {"secret_key_ref": {"name": token_secret, "key": TOKEN_SECRET_KEY}}
        variables.append({"name": "HF_TOKEN", "value_from": reference})
    return variables


def _mounts() -> list[core.VolumeMountArgsDict]:
    return [
        {"name": "cache", "mount_path": _CACHE_PATH},
        {"name": "shared-memory", "mount_path": "/dev/shm"},  # noqa: S108 - the pod's own volume
    ]


def _probe(probe: Probe) -> core.ProbeArgsDict:
    return {
        "http_get": {"path": probe.path, "port": "http"},
        "period_seconds": probe.period_seconds,
        "failure_threshold": probe.failure_threshold,
        "timeout_seconds": probe.timeout_seconds,
    }
