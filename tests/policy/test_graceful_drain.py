"""graceful-drain: hook and grace period, in every way to state them."""

from typing import Any

import pytest
from pulumi_policy.proxy import UNKNOWN_NUMBER_VALUE, UNKNOWN_OBJECT_VALUE

from policy.rules.graceful_drain import RULE
from tests.policy.fixtures import (
    COMPLIANT_DEPLOYMENT,
    COMPLIANT_POD_SPEC,
    ENDING_KINDS,
    INIT,
    POD,
    SERVER,
    SERVING_KINDS,
    Props,
    thawed,
    with_value,
    without,
)
from tests.policy.judging import judge, judge_stack
from tests.policy.test_probes import claim_template, claiming

HOOK = (*SERVER, "lifecycle", "preStop")
GRACE = (*POD, "terminationGracePeriodSeconds")
ACCELERATOR = (*SERVER, "resources", "limits", "aws.amazon.com/neuron")


def draining(hook: Any, grace: Any) -> Props:
    props = with_value(COMPLIANT_DEPLOYMENT, HOOK, hook)
    return without(props, GRACE) if grace is None else with_value(props, GRACE, grace)


def test_the_compliant_deployment_passes() -> None:
    assert judge(RULE, COMPLIANT_DEPLOYMENT).passed


@pytest.mark.parametrize("hook", [None, {}])
def test_a_missing_hook_is_a_violation(hook: Any) -> None:
    [message] = judge(RULE, draining(hook, 80)).violations
    assert "no preStop hook" in message
    assert "Fix: add spec.template.spec.containers[0].lifecycle.preStop" in message


@pytest.mark.parametrize(
    ("hook", "grace", "enough"),
    [
        ({"sleep": {"seconds": 40}}, 71, True),
        ({"sleep": {"seconds": 40}}, 70, False),
        ({"sleep": {"seconds": 40.0}}, 71.0, True),
        ({"exec": {"command": ["sleep", "15"]}}, 46, True),
        ({"exec": {"command": ["sleep", "15"]}}, 45, False),
        ({"exec": {"command": ["/bin/sh", "-c", "touch /tmp/drain; sleep 15s && sleep 1m"]}}, 106, True),
        ({"exec": {"command": ["/bin/sh", "-c", "touch /tmp/drain; sleep 15s && sleep 1m"]}}, 105, False),
        ({"exec": {"command": ["python3", "-c", "import time; time.sleep(20)"]}}, 50, False),
        ({"httpGet": {"path": "/drain", "port": 8080}}, 31, True),
        ({"httpGet": {"path": "/drain", "port": 8080}}, None, False),
        ({"sleep": {"seconds": 5}}, None, False),
    ],
)
def test_the_grace_period_exceeds_delay_and_longest_request(hook: Any, grace: Any, enough: bool) -> None:
    verdict = judge(RULE, draining(hook, grace))
    assert verdict.passed is enough
    assert enough or "a grace period of" in verdict.violations[0]


def test_the_longest_request_can_be_stated() -> None:
    assert judge(RULE, COMPLIANT_DEPLOYMENT, config={"longestRequestSeconds": 39}).passed
    assert judge(RULE, COMPLIANT_DEPLOYMENT, config={"longestRequestSeconds": 40}).violations
    assert judge(RULE, COMPLIANT_DEPLOYMENT, config={"longestRequestSeconds": "nonsense"}).passed


def test_what_serves_nothing_needs_no_drain() -> None:
    props = without(draining(None, 80), (*SERVER, "args"))
    assert judge(RULE, with_value(props, (*SERVER, "image"), "example.com/training:1")).passed
    assert judge(RULE, without(draining(None, 80), ACCELERATOR)).passed
    assert judge(RULE, with_value(COMPLIANT_DEPLOYMENT, (*INIT, "image"), "vllm/vllm-openai:v0.9.1")).passed


@pytest.mark.parametrize("kind", SERVING_KINDS)
def test_each_kind_whose_pods_stay_up_is_judged(kind: str) -> None:
    resource_type, props = SERVING_KINDS[kind](thawed(COMPLIANT_POD_SPEC))
    assert judge(RULE, props, resource_type).passed
    pod = without(COMPLIANT_POD_SPEC, ("containers", 0, "lifecycle"))
    resource_type, props = SERVING_KINDS[kind](pod)
    assert len(judge(RULE, props, resource_type).violations) == 1


@pytest.mark.parametrize("kind", ENDING_KINDS)
def test_a_job_has_nothing_to_drain(kind: str) -> None:
    pod = without(COMPLIANT_POD_SPEC, ("containers", 0, "lifecycle"))
    resource_type, props = ENDING_KINDS[kind](pod)
    assert judge(RULE, props, resource_type).passed


def test_a_patch_is_left_alone() -> None:
    assert judge(RULE, draining(None, None), "kubernetes:apps/v1:DeploymentPatch").passed


def test_a_workload_that_claims_its_accelerator_is_judged_with_the_stack() -> None:
    server = claiming(draining(None, 80))
    assert judge(RULE, server.props).passed
    assert judge_stack(RULE, claim_template("neuron.aws.com"), server).urns == (server.urn,)
    assert judge_stack(RULE, claim_template("nic.example.com"), server).passed


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (HOOK, UNKNOWN_OBJECT_VALUE),
        ((*HOOK, "sleep", "seconds"), UNKNOWN_NUMBER_VALUE),
        (GRACE, UNKNOWN_NUMBER_VALUE),
        ((*SERVER, "lifecycle"), UNKNOWN_OBJECT_VALUE),
    ],
)
def test_unknown_values_are_said_to_be_unjudged_and_break_nothing(path: tuple[str | int, ...], value: str) -> None:
    verdict = judge(RULE, with_value(COMPLIANT_DEPLOYMENT, path, value))
    assert verdict.violations == ()
    assert str(path[-1]) in verdict.unjudged
