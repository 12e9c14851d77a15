"""memory-limits: each way to lack a limit, and what must not be mistaken for one."""

from typing import Any

import pytest
from pulumi_policy.proxy import UNKNOWN_OBJECT_VALUE, UNKNOWN_STRING_VALUE

from policy.rules.memory_limits import RULE
from tests.policy.fixtures import (
    ALL_KINDS,
    COMPLIANT_DEPLOYMENT,
    COMPLIANT_POD_SPEC,
    INIT,
    POD,
    SERVER,
    SIDECAR,
    Path,
    thawed,
    value_at,
    with_value,
    without,
)
from tests.policy.judging import judge

LIMIT = ("resources", "limits", "memory")


def test_the_compliant_deployment_passes() -> None:
    assert judge(RULE, COMPLIANT_DEPLOYMENT).passed


@pytest.mark.parametrize(("container", "name"), [(SERVER, "server"), (SIDECAR, "metrics"), (INIT, "model-cache")])
def test_a_container_without_a_limit_is_named_with_its_path_the_measurement_and_the_fix(
    container: Path, name: str
) -> None:
    [message] = judge(RULE, without(COMPLIANT_DEPLOYMENT, (*container, *LIMIT))).violations
    assert f"Deployment serving/vllm, container {name} (spec.template.spec." in message
    assert "Qwen3-8B took the whole node down (NodeStatusUnknown) after 6 minutes" in message
    assert "Fix: set spec.template.spec." in message


@pytest.mark.parametrize("path", [("resources",), ("resources", "limits"), LIMIT])
def test_a_limit_is_missing_wherever_the_path_to_it_ends(path: Path) -> None:
    assert len(judge(RULE, without(COMPLIANT_DEPLOYMENT, (*SIDECAR, *path))).violations) == 1


@pytest.mark.parametrize("value", ["0", 0, "0Gi", "-1Gi", "4GB", "much", None, [], {"memory": "4Gi"}, True])
def test_a_limit_that_is_none_is_a_violation(value: object) -> None:
    assert len(judge(RULE, with_value(COMPLIANT_DEPLOYMENT, (*SIDECAR, *LIMIT), value)).violations) == 1


@pytest.mark.parametrize("value", ["4Gi", "4G", "4096Mi", "4e9", 4294967296, 4294967296.0, "1.5Gi", "500000k"])
def test_every_spelling_of_a_quantity_is_a_limit(value: object) -> None:
    assert judge(RULE, with_value(COMPLIANT_DEPLOYMENT, (*SIDECAR, *LIMIT), value)).passed


def test_a_missing_request_is_fine() -> None:
    assert judge(RULE, without(COMPLIANT_DEPLOYMENT, (*SERVER, "resources", "requests"))).passed


def test_a_request_is_no_limit() -> None:
    props = with_value(COMPLIANT_DEPLOYMENT, (*SIDECAR, "resources"), {"requests": {"memory": "1Gi"}})
    assert len(judge(RULE, props).violations) == 1


def test_all_containers_are_reported_and_not_the_first_only() -> None:
    props = thawed(COMPLIANT_DEPLOYMENT)
    for container in (SERVER, SIDECAR, INIT):
        props = without(props, (*container, "resources"))
    assert len(judge(RULE, props).violations) == 3


def test_a_native_sidecar_needs_a_limit_too() -> None:
    props = with_value(COMPLIANT_DEPLOYMENT, (*POD, "initContainers", 1), {"name": "proxy", "restartPolicy": "Always"})
    assert len(judge(RULE, props).violations) == 1


def test_an_ephemeral_container_may_not_have_resources_and_needs_none() -> None:
    props = with_value(COMPLIANT_DEPLOYMENT, (*POD, "ephemeralContainers"), [{"name": "debug"}])
    assert judge(RULE, props).passed


def test_an_ordinary_web_server_without_an_accelerator_needs_a_limit_as_well() -> None:
    pod = {"containers": [{"name": "nginx", "image": "nginx:1.27"}]}
    assert len(judge(RULE, with_value(COMPLIANT_DEPLOYMENT, POD, pod)).violations) == 1


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_each_kind_that_runs_pods_passes_when_compliant(kind: str) -> None:
    resource_type, props = ALL_KINDS[kind](thawed(COMPLIANT_POD_SPEC))
    assert judge(RULE, props, resource_type).passed


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_each_kind_that_runs_pods_is_judged(kind: str) -> None:
    resource_type, props = ALL_KINDS[kind](without(COMPLIANT_POD_SPEC, ("containers", 0, *LIMIT)))
    assert len(judge(RULE, props, resource_type).violations) == 1


def test_the_model_of_an_inference_service_is_a_container() -> None:
    props = {"kind": "InferenceService", "apiVersion": "serving.kserve.io/v1beta1"}
    spec = {
        "predictor": {"model": {"modelFormat": {"name": "huggingface"}, "resources": {"limits": {"memory": "8Gi"}}}}
    }
    resource_type = "kubernetes:serving.kserve.io/v1beta1:InferenceService"
    assert judge(RULE, props | {"spec": spec}, resource_type).passed
    broken = without(props | {"spec": spec}, ("spec", "predictor", "model", "resources"))
    assert "container model (spec.predictor.model)" in judge(RULE, broken, resource_type).violations[0]


@pytest.mark.parametrize(
    ("resource_type", "props"),
    [
        ("kubernetes:apps/v1:DeploymentPatch", {"spec": {"template": {"spec": {"containers": [{"name": "a"}]}}}}),
        ("kubernetes:core/v1:Service", {"kind": "Service", "spec": {"containers": [{"name": "a"}]}}),
        ("kubernetes:example.com/v1:Deployment", {"apiVersion": "example.com/v1", "kind": "Deployment", "spec": {}}),
        ("aws:ecs/taskDefinition:TaskDefinition", {"kind": "Pod", "spec": {"containers": [{"name": "a"}]}}),
        ("kubernetes:core/v1:Pod", {}),
    ],
)
def test_what_owns_no_whole_pod_template_is_left_alone(resource_type: str, props: dict[str, Any]) -> None:
    assert judge(RULE, props, resource_type).passed


def test_an_unknown_limit_is_neither_a_violation_nor_a_silent_pass() -> None:
    verdict = judge(RULE, with_value(COMPLIANT_DEPLOYMENT, (*SERVER, *LIMIT), UNKNOWN_STRING_VALUE))
    assert verdict.violations == ()
    assert "spec.template.spec.containers[0].resources.limits.memory" in verdict.unjudged


def test_an_unknown_value_does_not_hide_what_is_known() -> None:
    props = with_value(COMPLIANT_DEPLOYMENT, (*SERVER, "resources"), UNKNOWN_OBJECT_VALUE)
    verdict = judge(RULE, without(props, (*SIDECAR, "resources")))
    assert ["container metrics" in message for message in verdict.violations] == [True]
    assert "containers[0].resources" in verdict.unjudged


def test_an_unknown_pod_spec_is_said_to_be_unjudged() -> None:
    assert judge(RULE, with_value(COMPLIANT_DEPLOYMENT, ("spec",), UNKNOWN_OBJECT_VALUE)).unjudged


def test_unknown_values_that_no_limit_depends_on_are_not_mentioned() -> None:
    props = with_value(COMPLIANT_DEPLOYMENT, (*SERVER, "image"), UNKNOWN_STRING_VALUE)
    props = with_value(props, ("metadata", "name"), UNKNOWN_STRING_VALUE)
    assert judge(RULE, props).passed


def test_the_fixture_cannot_be_changed_by_a_test() -> None:
    with pytest.raises(TypeError):
        value_at(COMPLIANT_DEPLOYMENT, ("metadata",))["name"] = "other"
