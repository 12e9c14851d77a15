"""The kinds that run pods, or describe some for others to run, and where each keeps its pod specs."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

Path = tuple[str, ...]
# Stands for every element of a list, and for every value of an object.
EACH = "*"


@dataclass(frozen=True)
class WorkloadKind:
    """Where a kind keeps its pod specs, and what these are.

    `ends`: the pods end by design. `is_partial`: another object completes the pod spec, so that what is missing may
    stand there. `container_fields` are fields of a pod spec that are a container themselves.
    """

    pod_specs: tuple[Path, ...]
    ends: bool = False
    is_partial: bool = False
    container_fields: tuple[str, ...] = ()


_TEMPLATE: Path = ("template", "spec")
_SPEC_TEMPLATE: Path = ("spec", *_TEMPLATE)
_CONTROLLER = WorkloadKind((_SPEC_TEMPLATE,))
_JOB = WorkloadKind((_SPEC_TEMPLATE,), ends=True)
# What follows `spec` in a JobSet.
_JOBS_OF_A_SET: Path = ("replicatedJobs", EACH, "template", *_SPEC_TEMPLATE)

# KServe's predictor names its main container by model format: `model`, or the framework in older manifests.
_KSERVE_CONTAINERS = (
    "model",
    "huggingface",
    "pytorch",
    "triton",
    "tensorflow",
    "onnx",
    "sklearn",
    "xgboost",
    "lightgbm",
)
# Kubeflow names the replicas of each kind after its framework, and keeps them by role, such as Master and Worker.
_KUBEFLOW_REPLICAS = {
    "JAXJob": "jaxReplicaSpecs",
    "MPIJob": "mpiReplicaSpecs",
    "PaddleJob": "paddleReplicaSpecs",
    "PyTorchJob": "pytorchReplicaSpecs",
    "TFJob": "tfReplicaSpecs",
    "XGBoostJob": "xgbReplicaSpecs",
}


def _ray_cluster(*path: str) -> tuple[Path, ...]:
    return (
        (*path, "headGroupSpec", *_TEMPLATE),
        (*path, "workerGroupSpecs", EACH, *_TEMPLATE),
    )


_LLM_INFERENCE_SERVICE: tuple[Path, ...] = (
    ("spec", "template"),
    ("spec", "worker"),
    ("spec", "prefill", "template"),
    ("spec", "prefill", "worker"),
    ("spec", "router", "scheduler", "template"),
)
# A runtime has the fields of a pod spec that matter to it straight in its spec; an InferenceService adds the rest.
_SERVING_RUNTIME = WorkloadKind((("spec",), ("spec", "workerSpec")), is_partial=True)
_TRAINING_RUNTIME = WorkloadKind((("spec", "template", "spec", *_JOBS_OF_A_SET),), ends=True, is_partial=True)
# github.com/aws/sagemaker-hyperpod-cli, hyperpod-pytorch-job-template/.../v1_1/template.py
_HYPERPOD_JOB = WorkloadKind((("spec", "replicaSpecs", EACH, *_TEMPLATE),), ends=True)

# By API group and kind, in any version. Kubernetes' own come first; above the others stand the files of their types.
WORKLOAD_KINDS: Mapping[tuple[str, str], WorkloadKind] = MappingProxyType(
    {
        ("", "Pod"): WorkloadKind((("spec",),)),
        ("", "ReplicationController"): _CONTROLLER,
        ("", "PodTemplate"): WorkloadKind((_TEMPLATE,)),
        ("apps", "Deployment"): _CONTROLLER,
        ("apps", "StatefulSet"): _CONTROLLER,
        ("apps", "DaemonSet"): _CONTROLLER,
        ("apps", "ReplicaSet"): _CONTROLLER,
        ("extensions", "Deployment"): _CONTROLLER,
        ("extensions", "DaemonSet"): _CONTROLLER,
        ("extensions", "ReplicaSet"): _CONTROLLER,
        ("batch", "Job"): _JOB,
        ("batch", "CronJob"): WorkloadKind((("spec", "jobTemplate", *_SPEC_TEMPLATE),), ends=True),
        # github.com/kubernetes-sigs/jobset, api/jobset/v1alpha2/jobset_types.go
        ("jobset.x-k8s.io", "JobSet"): WorkloadKind((("spec", *_JOBS_OF_A_SET),), ends=True),
        # github.com/kubernetes-sigs/lws, api/leaderworkerset/v1/leaderworkerset_types.go
        ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): WorkloadKind(
            (
                ("spec", "leaderWorkerTemplate", "leaderTemplate", "spec"),
                ("spec", "leaderWorkerTemplate", "workerTemplate", "spec"),
            )
        ),
        # github.com/argoproj/argo-rollouts, pkg/apis/rollouts/v1alpha1/types.go
        ("argoproj.io", "Rollout"): _CONTROLLER,
        # github.com/openkruise/kruise, apis/apps/v1beta1
        ("apps.kruise.io", "CloneSet"): _CONTROLLER,
        ("apps.kruise.io", "StatefulSet"): _CONTROLLER,
        ("apps.kruise.io", "DaemonSet"): _CONTROLLER,
        ("apps.kruise.io", "BroadcastJob"): _JOB,
        # github.com/knative/serving, pkg/apis/serving/v1/service_types.go
        ("serving.knative.dev", "Service"): _CONTROLLER,
        # github.com/kserve/kserve, pkg/apis/serving: v1beta1/inference_service.go, v1alpha1/servingruntime_types.go,
        # v1alpha1/llm_inference_service_types.go
        ("serving.kserve.io", "InferenceService"): WorkloadKind(
            (
                ("spec", "predictor"),
                ("spec", "predictor", "workerSpec"),
                ("spec", "transformer"),
                ("spec", "explainer"),
            ),
            container_fields=_KSERVE_CONTAINERS,
        ),
        ("serving.kserve.io", "ServingRuntime"): _SERVING_RUNTIME,
        ("serving.kserve.io", "ClusterServingRuntime"): _SERVING_RUNTIME,
        ("serving.kserve.io", "LLMInferenceService"): WorkloadKind(_LLM_INFERENCE_SERVICE),
        ("serving.kserve.io", "LLMInferenceServiceConfig"): WorkloadKind(_LLM_INFERENCE_SERVICE, is_partial=True),
        # github.com/ray-project/kuberay, ray-operator/apis/ray/v1
        ("ray.io", "RayCluster"): WorkloadKind(_ray_cluster("spec")),
        ("ray.io", "RayService"): WorkloadKind(_ray_cluster("spec", "rayClusterConfig")),
        ("ray.io", "RayJob"): WorkloadKind(
            (*_ray_cluster("spec", "rayClusterSpec"), ("spec", "submitterPodTemplate", "spec")), ends=True
        ),
        # github.com/kubeflow/training-operator, pkg/apis/kubeflow.org/v1; github.com/kubeflow/mpi-operator,
        # pkg/apis/kubeflow/v2beta1/types.go
        **{
            ("kubeflow.org", kind): WorkloadKind((("spec", replicas, EACH, *_TEMPLATE),), ends=True)
            for kind, replicas in _KUBEFLOW_REPLICAS.items()
        },
        # github.com/kubeflow/trainer, pkg/apis/trainer/v1alpha1: trainingruntime_types.go, and trainjob_types.go, whose
        # runtimePatches were podTemplateOverrides before 2.2.
        ("trainer.kubeflow.org", "TrainingRuntime"): _TRAINING_RUNTIME,
        ("trainer.kubeflow.org", "ClusterTrainingRuntime"): _TRAINING_RUNTIME,
        ("trainer.kubeflow.org", "TrainJob"): WorkloadKind(
            (
                ("spec",),
                ("spec", "initializer"),
                ("spec", "runtimePatches", EACH, "trainingRuntimeSpec", "template", "spec", *_JOBS_OF_A_SET),
                ("spec", "podTemplateOverrides", EACH, "spec"),
            ),
            ends=True,
            is_partial=True,
            container_fields=("trainer", "dataset", "model"),
        ),
        # github.com/volcano-sh/apis, pkg/apis/batch/v1alpha1/job.go
        ("batch.volcano.sh", "Job"): WorkloadKind((("spec", "tasks", EACH, *_TEMPLATE),), ends=True),
        # AWS's command line and its user guide spell the kind differently.
        ("sagemaker.amazonaws.com", "HyperPodPyTorchJob"): _HYPERPOD_JOB,
        ("sagemaker.amazonaws.com", "HyperPodPytorchJob"): _HYPERPOD_JOB,
    }
)
