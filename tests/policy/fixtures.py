"""One compliant accelerator Deployment, as the engine shows it to a pack; each test changes one thing of it."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

Path = tuple[str | int, ...]
Props = dict[str, Any]

TOKEN = "hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYz01234567"
IMAGE = "public.ecr.aws/neuron/pytorch-inference-vllm-neuronx:0.13.0-neuronx-py312-sdk2.28.0-ubuntu24.04"
DEPLOYMENT_TYPE = "kubernetes:apps/v1:Deployment"
CUSTOM_RESOURCE_TYPE = "kubernetes:apiextensions.k8s.io:CustomResource"


def frozen(value: Any) -> Any:
    """A deep copy that nothing can change."""
    if isinstance(value, Mapping):
        return MappingProxyType({key: frozen(below) for key, below in value.items()})
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(frozen(below) for below in value)
    return value


def thawed(value: Any) -> Any:
    """A deep copy of plain dicts and lists, which a test may change and which the SDK's proxies wrap."""
    if isinstance(value, Mapping):
        return {key: thawed(below) for key, below in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [thawed(below) for below in value]
    return value


COMPLIANT_POD_SPEC: Mapping[str, Any] = frozen(
    {
        "nodeSelector": {"node.kubernetes.io/instance-type": "trn1.2xlarge"},
        "terminationGracePeriodSeconds": 80,
        "initContainers": [
            {
                "name": "model-cache",
                "image": IMAGE,
                "command": ["python", "/opt/load.py"],
                "resources": {"limits": {"memory": "2Gi"}},
            }
        ],
        "containers": [
            {
                "name": "server",
                "image": IMAGE,
                "command": ["/bin/sh", "-c"],
                "args": ["exec vllm serve TinyLlama/TinyLlama-1.1B-Chat-v1.0 --tensor-parallel-size 2"],
                "env": [
                    {"name": "NEURON_RT_LOG_LEVEL", "value": "WARNING"},
                    {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf-token", "key": "token"}}},
                ],
                "resources": {
                    "requests": {"memory": "24Gi"},
                    "limits": {"memory": "24Gi", "aws.amazon.com/neuron": "1"},
                },
                "startupProbe": {
                    "httpGet": {"path": "/v1/models", "port": 8080},
                    "periodSeconds": 5,
                    "failureThreshold": 75,
                },
                "readinessProbe": {"httpGet": {"path": "/v1/models", "port": 8080}, "periodSeconds": 5},
                "livenessProbe": {"httpGet": {"path": "/health", "port": 8080}, "failureThreshold": 6},
                "lifecycle": {"preStop": {"sleep": {"seconds": 40}}},
            },
            {
                "name": "metrics",
                "image": "example.com/metrics:1.2",
                "resources": {"limits": {"memory": "128Mi"}},
            },
        ],
    }
)

COMPLIANT_DEPLOYMENT: Mapping[str, Any] = frozen(
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "vllm", "namespace": "serving"},
        "spec": {
            "replicas": 1,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
            "selector": {"matchLabels": {"app": "vllm"}},
            "template": {"metadata": {"labels": {"app": "vllm"}}, "spec": COMPLIANT_POD_SPEC},
        },
    }
)

POD: Path = ("spec", "template", "spec")
SERVER: Path = (*POD, "containers", 0)
SIDECAR: Path = (*POD, "containers", 1)
INIT: Path = (*POD, "initContainers", 0)


def custom_resource(api_version: str, kind: str, spec: Any, name: str = "one", namespace: str = "serving") -> Props:
    """The properties of any Kubernetes object with a spec."""
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": thawed(spec)}


def with_value(base: Mapping[str, Any], path: Path, value: Any) -> Props:
    """A copy with one value set; one past the end of a list appends."""
    copy: Props = thawed(base)
    parent = _at(copy, path[:-1])
    if isinstance(parent, list) and path[-1] == len(parent):
        parent.append(thawed(value))
    else:
        parent[path[-1]] = thawed(value)
    return copy


def without(base: Mapping[str, Any], path: Path) -> Props:
    """A copy that lacks one value."""
    copy: Props = thawed(base)
    del _at(copy, path[:-1])[path[-1]]
    return copy


def value_at(base: Mapping[str, Any], path: Path) -> Any:
    """The value at a path."""
    return _at(base, path)


def _at(value: Any, path: Path) -> Any:
    for key in path:
        value = value.setdefault(key, {}) if isinstance(value, dict) else value[key]
    return value


def _controller(api_version: str, kind: str) -> Callable[[Props], tuple[str, Props]]:
    def make(pod: Props) -> tuple[str, Props]:
        spec = {"replicas": 1, "template": {"spec": pod}}
        props = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "vllm"}, "spec": spec}
        group = "core/v1" if api_version == "v1" else api_version
        return f"kubernetes:{group}:{kind}", props

    return make


def _custom(api_version: str, kind: str, spec: Callable[[Props], Props]) -> Callable[[Props], tuple[str, Props]]:
    def make(pod: Props) -> tuple[str, Props]:
        props = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "vllm"}, "spec": spec(pod)}
        return CUSTOM_RESOURCE_TYPE, props

    return make


def _jobs_of_a_set(pod: Props) -> Props:
    return {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": {"spec": pod}}}}]}


def _kubeflow(kind: str, replicas: str, role: str) -> Callable[[Props], tuple[str, Props]]:
    def spec(pod: Props) -> Props:
        return {
            "runPolicy": {"cleanPodPolicy": "Running"},
            replicas: {role: {"replicas": 1, "template": {"spec": pod}}},
        }

    return _custom("kubeflow.org/v1", kind, spec)


def _plain_pod(pod: Props) -> tuple[str, Props]:
    return "kubernetes:core/v1:Pod", {"apiVersion": "v1", "kind": "Pod", "spec": pod}


def _cron_job(pod: Props) -> tuple[str, Props]:
    spec = {"schedule": "@daily", "jobTemplate": {"spec": {"template": {"spec": pod}}}}
    return "kubernetes:batch/v1:CronJob", {"apiVersion": "batch/v1", "kind": "CronJob", "spec": spec}


def _deployment_list(pod: Props) -> tuple[str, Props]:
    item = _controller("apps/v1", "Deployment")(pod)[1]
    return "kubernetes:apps/v1:DeploymentList", {"apiVersion": "apps/v1", "kind": "DeploymentList", "items": [item]}


def _plain_list(pod: Props) -> tuple[str, Props]:
    item = _controller("apps/v1", "StatefulSet")(pod)[1]
    return CUSTOM_RESOURCE_TYPE, {"apiVersion": "v1", "kind": "List", "items": [{"kind": "Service"}, item]}


def _ray(pod: Props) -> Props:
    return {
        "headGroupSpec": {"template": {"spec": {"containers": []}}},
        "workerGroupSpecs": [{"replicas": 1, "template": {"spec": pod}}],
    }


# Every kind that runs pods which stay up, with the given pod spec in one of its templates.
SERVING_KINDS: dict[str, Callable[[Props], tuple[str, Props]]] = {
    "Pod": _plain_pod,
    "Deployment": _controller("apps/v1", "Deployment"),
    "StatefulSet": _controller("apps/v1", "StatefulSet"),
    "DaemonSet": _controller("apps/v1", "DaemonSet"),
    "ReplicaSet": _controller("apps/v1", "ReplicaSet"),
    "ReplicationController": _controller("v1", "ReplicationController"),
    "PodTemplate": lambda pod: (
        "kubernetes:core/v1:PodTemplate",
        {"apiVersion": "v1", "kind": "PodTemplate", "template": {"spec": pod}},
    ),
    "extensions Deployment": _controller("extensions/v1beta1", "Deployment"),
    "extensions DaemonSet": _controller("extensions/v1beta1", "DaemonSet"),
    "extensions ReplicaSet": _controller("extensions/v1beta1", "ReplicaSet"),
    "DeploymentList": _deployment_list,
    "List": _plain_list,
    "Rollout": _custom("argoproj.io/v1alpha1", "Rollout", lambda pod: {"replicas": 1, "template": {"spec": pod}}),
    "Knative Service": _custom("serving.knative.dev/v1", "Service", lambda pod: {"template": {"spec": pod}}),
    "RayCluster": lambda pod: ("kubernetes:ray.io/v1:RayCluster", {"spec": _ray(pod)}),
    "RayService": _custom("ray.io/v1", "RayService", lambda pod: {"rayClusterConfig": _ray(pod)}),
    "LeaderWorkerSet leader": _custom(
        "leaderworkerset.x-k8s.io/v1",
        "LeaderWorkerSet",
        lambda pod: {
            "leaderWorkerTemplate": {
                "leaderTemplate": {"spec": pod},
                "workerTemplate": {"spec": {"containers": []}},
            }
        },
    ),
    "LeaderWorkerSet worker": _custom(
        "leaderworkerset.x-k8s.io/v1",
        "LeaderWorkerSet",
        lambda pod: {"leaderWorkerTemplate": {"size": 2, "workerTemplate": {"spec": pod}}},
    ),
    "InferenceService": _custom("serving.kserve.io/v1beta1", "InferenceService", lambda pod: {"predictor": pod}),
    "LLMInferenceService": _custom("serving.kserve.io/v1alpha1", "LLMInferenceService", lambda pod: {"template": pod}),
    "LLMInferenceService prefill": _custom(
        "serving.kserve.io/v1alpha1", "LLMInferenceService", lambda pod: {"prefill": {"template": pod}}
    ),
}
SERVING_KINDS |= {
    f"kruise {kind}": _custom("apps.kruise.io/v1beta1", kind, lambda pod: {"replicas": 1, "template": {"spec": pod}})
    for kind in ("CloneSet", "StatefulSet", "DaemonSet")
}
# Kinds whose pods end.
ENDING_KINDS: dict[str, Callable[[Props], tuple[str, Props]]] = {
    "Job": _controller("batch/v1", "Job"),
    "CronJob": _cron_job,
    "JobSet": _custom("jobset.x-k8s.io/v1alpha2", "JobSet", _jobs_of_a_set),
    "RayJob": _custom("ray.io/v1", "RayJob", lambda pod: {"rayClusterSpec": _ray(pod)}),
    "RayJob submitter": _custom("ray.io/v1", "RayJob", lambda pod: {"submitterPodTemplate": {"spec": pod}}),
    "kruise BroadcastJob": _custom("apps.kruise.io/v1beta1", "BroadcastJob", lambda pod: {"template": {"spec": pod}}),
    "JAXJob": _kubeflow("JAXJob", "jaxReplicaSpecs", "Worker"),
    "MPIJob": _kubeflow("MPIJob", "mpiReplicaSpecs", "Launcher"),
    "PaddleJob": _kubeflow("PaddleJob", "paddleReplicaSpecs", "Worker"),
    "PyTorchJob": _kubeflow("PyTorchJob", "pytorchReplicaSpecs", "Master"),
    "TFJob": _kubeflow("TFJob", "tfReplicaSpecs", "Chief"),
    "XGBoostJob": _kubeflow("XGBoostJob", "xgbReplicaSpecs", "Worker"),
    "Volcano Job": _custom(
        "batch.volcano.sh/v1alpha1",
        "Job",
        lambda pod: {"minAvailable": 1, "tasks": [{"name": "worker", "replicas": 1, "template": {"spec": pod}}]},
    ),
    "HyperPodPyTorchJob": _custom(
        "sagemaker.amazonaws.com/v1",
        "HyperPodPyTorchJob",
        lambda pod: {"replicaSpecs": [{"name": "pods", "replicas": 1, "template": {"spec": pod}}]},
    ),
    "HyperPodPytorchJob": _custom(
        "sagemaker.amazonaws.com/v1",
        "HyperPodPytorchJob",
        lambda pod: {"replicaSpecs": [{"name": "pods", "replicas": 1, "template": {"spec": pod}}]},
    ),
}
ALL_KINDS = SERVING_KINDS | ENDING_KINDS
# Kinds whose pod specs are completed by another object.
PARTIAL_KINDS: dict[str, Callable[[Props], tuple[str, Props]]] = {
    "ServingRuntime": _custom("serving.kserve.io/v1alpha1", "ServingRuntime", lambda pod: pod),
    "ServingRuntime worker": _custom(
        "serving.kserve.io/v1alpha1", "ServingRuntime", lambda pod: {"containers": [], "workerSpec": pod}
    ),
    "ClusterServingRuntime": _custom("serving.kserve.io/v1alpha1", "ClusterServingRuntime", lambda pod: pod),
    "LLMInferenceServiceConfig": _custom(
        "serving.kserve.io/v1alpha1", "LLMInferenceServiceConfig", lambda pod: {"template": pod}
    ),
    "TrainingRuntime": _custom(
        "trainer.kubeflow.org/v1alpha1", "TrainingRuntime", lambda pod: {"template": {"spec": _jobs_of_a_set(pod)}}
    ),
    "ClusterTrainingRuntime": _custom(
        "trainer.kubeflow.org/v1alpha1",
        "ClusterTrainingRuntime",
        lambda pod: {"template": {"spec": _jobs_of_a_set(pod)}},
    ),
    "TrainJob trainer": _custom(
        "trainer.kubeflow.org/v1alpha1", "TrainJob", lambda pod: {"trainer": pod["containers"][0]}
    ),
    "TrainJob initializer": _custom(
        "trainer.kubeflow.org/v1alpha1", "TrainJob", lambda pod: {"initializer": {"model": pod["containers"][0]}}
    ),
    "TrainJob patch": _custom(
        "trainer.kubeflow.org/v1alpha1",
        "TrainJob",
        lambda pod: {
            "runtimePatches": [{"manager": "team", "trainingRuntimeSpec": {"template": {"spec": _jobs_of_a_set(pod)}}}]
        },
    ),
    "TrainJob override": _custom(
        "trainer.kubeflow.org/v1alpha1",
        "TrainJob",
        lambda pod: {"podTemplateOverrides": [{"targetJobs": [{"name": "node"}], "spec": pod}]},
    ),
}
