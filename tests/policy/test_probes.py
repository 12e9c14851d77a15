"""probes: each way to lack a probe or its budget, and the workloads that need none."""

from typing import Any

import pytest
from pulumi_policy.proxy import UNKNOWN_NUMBER_VALUE, UNKNOWN_OBJECT_VALUE, UNKNOWN_STRING_VALUE

from policy.rules.probes import RULE
from tests.policy.fixtures import (
    COMPLIANT_DEPLOYMENT,
    COMPLIANT_POD_SPEC,
    ENDING_KINDS,
    POD,
    SERVER,
    SERVING_KINDS,
    SIDECAR,
    Props,
    thawed,
    value_at,
    with_value,
    without,
)
from tests.policy.judging import Given, judge, judge_stack

ACCELERATOR = (*SERVER, "resources", "limits", "aws.amazon.com/neuron")


def without_probes(base: Any = COMPLIANT_DEPLOYMENT, server: tuple[str | int, ...] = SERVER) -> Props:
    props: Props = thawed(base)
    for name in ("startupProbe", "readinessProbe", "livenessProbe"):
        props = without(props, (*server, name))
    return props


def test_the_compliant_deployment_passes() -> None:
    assert judge(RULE, COMPLIANT_DEPLOYMENT).passed


@pytest.mark.parametrize(("probe", "word"), [("startupProbe", "startup"), ("readinessProbe", "readiness")])
def test_a_missing_probe_is_named_with_place_measurement_and_fix(probe: str, word: str) -> None:
    messages = judge(RULE, without(COMPLIANT_DEPLOYMENT, (*SERVER, probe))).violations
    assert f"no {word} probe" in messages[0]
    assert "container server (spec.template.spec.containers[0])" in messages[0]
    assert "43.8 %" in messages[0]
    assert f"Fix: add spec.template.spec.containers[0].{probe}" in messages[0]


def test_a_missing_liveness_probe_is_fine() -> None:
    assert judge(RULE, without(COMPLIANT_DEPLOYMENT, (*SERVER, "livenessProbe"))).passed


@pytest.mark.parametrize("handler", ["httpGet", "tcpSocket", "exec", "grpc"])
def test_any_kind_of_probe_counts(handler: str) -> None:
    props = with_value(COMPLIANT_DEPLOYMENT, (*SERVER, "readinessProbe"), {handler: {"port": 8080}})
    assert judge(RULE, props).passed


@pytest.mark.parametrize("probe", [{}, None, {"periodSeconds": 5}])
def test_a_probe_without_a_handler_is_none(probe: object) -> None:
    messages = judge(RULE, with_value(COMPLIANT_DEPLOYMENT, (*SERVER, "readinessProbe"), probe)).violations
    assert ["no readiness probe" in message for message in messages] == [True]


@pytest.mark.parametrize(
    ("delay", "period", "failures", "enough"),
    [
        (0, 5, 48, True),
        (0, 5, 47, False),
        (240, None, None, True),
        (209, None, None, False),
        (210, None, None, True),
        (None, None, 24, True),
        (None, 80, None, True),
        (0, 0, 24, True),
        (None, None, None, False),
        (30.0, 7.0, 30.0, True),
    ],
)
def test_the_startup_budget_is_delay_plus_period_times_failures_with_the_defaults_of_kubernetes(
    delay: float | None, period: float | None, failures: float | None, enough: bool
) -> None:
    probe: dict[str, Any] = {"httpGet": {"path": "/v1/models", "port": 8080}}
    numbers = {"initialDelaySeconds": delay, "periodSeconds": period, "failureThreshold": failures}
    probe |= {key: value for key, value in numbers.items() if value is not None}
    verdict = judge(RULE, with_value(COMPLIANT_DEPLOYMENT, (*SERVER, "startupProbe"), probe))
    assert verdict.passed is enough
    assert enough or "240 s" in verdict.violations[0]


def test_a_liveness_probe_without_a_startup_probe_must_not_end_the_load() -> None:
    messages = judge(RULE, without(COMPLIANT_DEPLOYMENT, (*SERVER, "startupProbe"))).violations
    assert any("the liveness probe can kill the server after 60 s" in message for message in messages)


def test_a_patient_liveness_probe_without_a_startup_probe_leaves_only_the_missing_probe() -> None:
    props = with_value(COMPLIANT_DEPLOYMENT, (*SERVER, "livenessProbe", "initialDelaySeconds"), 600)
    [message] = judge(RULE, without(props, (*SERVER, "startupProbe"))).violations
    assert "no startup probe" in message


def test_on_other_accelerators_probes_are_needed_but_no_budget() -> None:
    props = without(COMPLIANT_DEPLOYMENT, ACCELERATOR)
    props = with_value(props, (*SERVER, "resources", "limits", "nvidia.com/gpu"), 1)
    assert judge(RULE, with_value(props, (*SERVER, "startupProbe", "failureThreshold"), 3)).passed
    assert len(judge(RULE, without_probes(props)).violations) == 2


@pytest.mark.parametrize(
    "name",
    [
        "aws.amazon.com/neuron",
        "aws.amazon.com/neuroncore",
        "aws.amazon.com/neurondevice",
        "nvidia.com/gpu",
        "amd.com/gpu",
    ],
)
@pytest.mark.parametrize("field", ["limits", "requests"])
def test_every_accelerator_resource_makes_a_server_one_to_probe(name: str, field: str) -> None:
    props = without_probes(without(COMPLIANT_DEPLOYMENT, ACCELERATOR))
    assert judge(RULE, props).passed
    assert judge(RULE, with_value(props, (*SERVER, "resources", field, name), "1")).violations


def test_asking_for_no_accelerator_asks_for_none() -> None:
    assert judge(RULE, with_value(without_probes(), ACCELERATOR, "0")).passed


@pytest.mark.parametrize(
    "image",
    [
        "vllm/vllm-openai:v0.9.1",
        "public.ecr.aws/neuron/pytorch-inference-vllm-neuronx:0.13",
        "ghcr.io/huggingface/text-generation-inference:3.3",
        "763104351884.dkr.ecr.us-east-1.amazonaws.com/huggingface-pytorch-tgi-inference:2.7",
        "lmsysorg/sglang:v0.5",
        "nvcr.io/nvidia/tritonserver:25.01-py3",
        "localhost:5000/vllm@sha256:0123",
    ],
)
def test_a_server_is_recognised_by_its_image(image: str) -> None:
    props = with_value(without_probes(), (*SERVER, "image"), image)
    assert judge(RULE, with_value(props, (*SERVER, "args"), ["exec /start.sh"])).violations


@pytest.mark.parametrize(
    "command",
    [
        ["vllm", "serve", "model"],
        ["python3", "-m", "vllm.entrypoints.openai.api_server"],
        ["python", "/opt/vllm/entrypoints/openai/api_server.py"],
        ["sh", "-c", "exec text-generation-launcher --port 80"],
        ["python", "-m", "sglang.launch_server"],
        ["tritonserver", "--model-repository=/models"],
    ],
)
def test_a_server_is_recognised_by_its_command(command: list[str]) -> None:
    props = with_value(without_probes(), (*SERVER, "image"), "example.com/team/server:1")
    props = without(props, (*SERVER, "args"))
    assert judge(RULE, with_value(props, (*SERVER, "command"), command)).violations


@pytest.mark.parametrize(
    ("image", "command"),
    [
        ("nginx:1.27", []),
        ("public.ecr.aws/neuron/pytorch-training-neuronx:2.8", ["torchrun", "train.py"]),
        ("example.com/vllm-router:1", []),
        ("example.com/vllm-exporter:1", []),
        ("vllm/vllm-openai:v0.9.1", ["sh", "-c", "ray start --address=$LEADER:6379 --block"]),
        ("vllm/vllm-openai:v0.9.1", ["vllm", "serve", "model", "--headless"]),
        ("lmsysorg/sglang:v0.5.3", ["python3", "-m", "sglang.launch_server", "--nnodes", "2", "--node-rank", "1"]),
        ("lmsysorg/sglang:v0.5.3", ["python3", "-m", "sglang.launch_server", "--node-rank=$(LWS_WORKER_INDEX)"]),
    ],
)
def test_what_serves_no_requests_needs_no_probes(image: str, command: list[str]) -> None:
    props = with_value(without_probes(), (*SERVER, "image"), image)
    props = without(props, (*SERVER, "args"))
    assert judge(RULE, with_value(props, (*SERVER, "command"), command)).passed


def test_an_ordinary_web_server_needs_no_probes() -> None:
    pod = {"containers": [{"name": "nginx", "image": "nginx:1.27"}]}
    assert judge(RULE, with_value(COMPLIANT_DEPLOYMENT, POD, pod)).passed


def test_the_same_server_without_an_accelerator_needs_no_probes() -> None:
    assert judge(RULE, without(without_probes(), ACCELERATOR)).passed


def test_a_sidecar_beside_the_server_needs_no_probes() -> None:
    assert judge(RULE, with_value(COMPLIANT_DEPLOYMENT, (*SIDECAR, "image"), "fluent/fluent-bit:3")).passed


def test_an_init_container_of_the_server_image_needs_no_probes_but_a_native_sidecar_does() -> None:
    init = value_at(COMPLIANT_DEPLOYMENT, SERVER) | {"name": "compile"}
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        del init[probe]
    at = (*POD, "initContainers", 1)
    assert judge(RULE, with_value(COMPLIANT_DEPLOYMENT, at, init)).passed
    sidecar = init | {"restartPolicy": "Always"}
    messages = judge(RULE, with_value(COMPLIANT_DEPLOYMENT, at, sidecar)).violations
    assert ["initContainers[1]" in message for message in messages] == [True, True]


@pytest.mark.parametrize("kind", SERVING_KINDS)
def test_each_kind_whose_pods_stay_up_is_judged(kind: str) -> None:
    resource_type, props = SERVING_KINDS[kind](thawed(COMPLIANT_POD_SPEC))
    assert judge(RULE, props, resource_type).passed
    resource_type, props = SERVING_KINDS[kind](without_probes(COMPLIANT_POD_SPEC, ("containers", 0)))
    assert len(judge(RULE, props, resource_type).violations) == 2


@pytest.mark.parametrize("kind", ENDING_KINDS)
def test_a_job_on_neuron_needs_no_probes(kind: str) -> None:
    resource_type, props = ENDING_KINDS[kind](without_probes(COMPLIANT_POD_SPEC, ("containers", 0)))
    assert judge(RULE, props, resource_type).passed


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
def test_a_bare_pod_that_ends_needs_no_probes(policy: str) -> None:
    pod = without_probes(COMPLIANT_POD_SPEC, ("containers", 0)) | {"restartPolicy": policy}
    assert judge(RULE, {"kind": "Pod", "apiVersion": "v1", "spec": pod}, "kubernetes:core/v1:Pod").passed


def test_a_patch_is_left_alone() -> None:
    assert judge(RULE, without_probes(), "kubernetes:apps/v1:DeploymentPatch").passed


@pytest.mark.parametrize(
    ("path", "value", "seen"),
    [
        ((*SERVER, "startupProbe"), UNKNOWN_OBJECT_VALUE, "startupProbe"),
        ((*SERVER, "readinessProbe"), UNKNOWN_OBJECT_VALUE, "readinessProbe"),
        ((*SERVER, "startupProbe", "failureThreshold"), UNKNOWN_NUMBER_VALUE, "failureThreshold"),
        ((*SERVER, "readinessProbe", "httpGet"), UNKNOWN_OBJECT_VALUE, "httpGet"),
        ((*SERVER, "args"), UNKNOWN_OBJECT_VALUE, "args"),
        ((*SIDECAR, "image"), UNKNOWN_STRING_VALUE, "containers[1].image"),
        (ACCELERATOR, UNKNOWN_NUMBER_VALUE, "aws.amazon.com/neuron"),
    ],
)
def test_unknown_values_are_said_to_be_unjudged_and_break_nothing(
    path: tuple[str | int, ...], value: str, seen: str
) -> None:
    verdict = judge(RULE, with_value(COMPLIANT_DEPLOYMENT, path, value))
    assert verdict.violations == ()
    assert seen in verdict.unjudged


def test_an_unknown_image_does_not_hide_the_server_that_its_command_shows() -> None:
    verdict = judge(RULE, with_value(without_probes(), (*SERVER, "image"), UNKNOWN_STRING_VALUE))
    assert len(verdict.violations) == 2


def claim_template(device_class: str) -> Given:
    devices = {"requests": [{"name": "chips", "exactly": {"deviceClassName": device_class, "count": 1}}]}
    metadata = {"name": "chips", "namespace": "serving"}
    props = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": metadata}
    return Given(
        "kubernetes:resource.k8s.io/v1:ResourceClaimTemplate", props | {"spec": {"spec": {"devices": devices}}}, "claim"
    )


def claiming(base: Any) -> Given:
    props = without(base, ACCELERATOR)
    claims = [{"name": "chips", "resourceClaimTemplateName": "chips"}]
    return Given("kubernetes:apps/v1:Deployment", with_value(props, (*POD, "resourceClaims"), claims), "server")


def test_a_workload_that_claims_its_accelerator_is_judged_with_the_stack() -> None:
    server = claiming(without_probes())
    assert judge(RULE, server.props).passed
    verdict = judge_stack(RULE, claim_template("neuron.aws.com"), server)
    assert len(verdict.violations) == 2
    assert set(verdict.urns) == {server.urn}
    assert judge_stack(RULE, claim_template("neuron.aws.com"), claiming(COMPLIANT_DEPLOYMENT)).passed


def test_a_claim_of_something_else_makes_no_accelerator_workload() -> None:
    assert judge_stack(RULE, claim_template("nic.example.com"), claiming(without_probes())).passed


def test_what_the_resource_pass_has_judged_is_not_reported_twice() -> None:
    server = Given("kubernetes:apps/v1:Deployment", without_probes(), "server")
    assert judge_stack(RULE, claim_template("neuron.aws.com"), server).passed
