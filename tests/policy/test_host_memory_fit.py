"""host-memory-fit: limits against the node that selectors or pools say, and against the model."""

from typing import Any

import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policy.rules.host_memory_fit import RULE
from tests.policy.fixtures import (
    COMPLIANT_DEPLOYMENT,
    CUSTOM_RESOURCE_TYPE,
    DEPLOYMENT_TYPE,
    INIT,
    POD,
    SERVER,
    SIDECAR,
    Props,
    custom_resource,
    with_value,
    without,
)
from tests.policy.judging import Given, judge, judge_stack

LIMIT = ("resources", "limits", "memory")
SELECTOR = (*POD, "nodeSelector")
TYPE = "node.kubernetes.io/instance-type"


def limited(memory: Any, base: Any = COMPLIANT_DEPLOYMENT) -> Props:
    return with_value(base, (*SERVER, *LIMIT), memory)


def node_group(instance_type: str) -> Given:
    props = {"instanceTypes": [instance_type], "scalingConfig": {"maxSize": 2}}
    return Given("aws:eks/nodeGroup:NodeGroup", props, f"group-{instance_type}")


def serving(model: str, base: Any = COMPLIANT_DEPLOYMENT) -> Props:
    return with_value(base, (*SERVER, "args"), [f"exec vllm serve {model} --tensor-parallel-size 2"])


def test_the_compliant_deployment_passes() -> None:
    assert judge(RULE, COMPLIANT_DEPLOYMENT).passed
    assert judge_stack(RULE, Given(DEPLOYMENT_TYPE, COMPLIANT_DEPLOYMENT), node_group("trn1.2xlarge")).passed


@pytest.mark.parametrize(("memory", "fits"), [("29Gi", True), ("30Gi", False), ("31G", True), (31457280000, True)])
def test_limits_are_summed_and_held_against_what_the_node_has_for_pods(memory: Any, fits: bool) -> None:
    verdict = judge(RULE, limited(memory))
    assert verdict.passed is fits
    if not fits:
        # 30 GiB and the 128 MiB of the other container, against what was measured on a real node.
        assert "the memory limits sum up to 30848 MiB; trn1.2xlarge has 30581 for pods" in verdict.violations[0]


def test_of_init_containers_the_largest_counts_and_a_native_sidecar_adds_up() -> None:
    large = with_value(COMPLIANT_DEPLOYMENT, (*INIT, *LIMIT), "29Gi")
    assert judge(RULE, large).passed
    assert judge(RULE, with_value(large, (*INIT, *LIMIT), "30Gi")).violations
    assert judge(RULE, with_value(large, (*INIT, "restartPolicy"), "Always")).violations


def test_node_affinity_says_the_type_as_well() -> None:
    expression = {"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["trn1"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    props = with_value(without(limited("64Gi"), SELECTOR), (*POD, "affinity"), affinity)
    # The family has a larger type, which holds it.
    assert judge(RULE, props).passed
    assert judge(RULE, limited("600Gi", props)).violations


@pytest.mark.parametrize("selector", [{}, {TYPE: "m7i.large"}, {TYPE: "trn9.huge"}, {"tier": "serving"}])
def test_of_an_unknown_node_type_nothing_is_said(selector: dict[str, str]) -> None:
    assert judge(RULE, with_value(limited("900Gi"), SELECTOR, selector)).passed


def test_a_pool_of_the_stack_says_the_type_where_the_pod_does_not() -> None:
    server = Given(DEPLOYMENT_TYPE, with_value(limited("30Gi"), SELECTOR, {}))
    assert judge_stack(RULE, server).passed
    verdict = judge_stack(RULE, server, node_group("trn1.2xlarge"))
    assert len(verdict.violations) == 1
    assert verdict.urns == (server.urn,)
    assert judge_stack(RULE, server, node_group("trn1.2xlarge"), node_group("trn1.32xlarge")).passed
    assert judge_stack(RULE, server, node_group("m7i.large")).passed


def test_a_karpenter_pool_that_may_start_any_type_says_nothing() -> None:
    server = Given(DEPLOYMENT_TYPE, with_value(limited("3000Gi"), SELECTOR, {}))
    spec: Props = {"template": {"spec": {"requirements": []}}}
    assert judge_stack(
        RULE, server, Given(CUSTOM_RESOURCE_TYPE, custom_resource("karpenter.sh/v1", "NodePool", spec))
    ).passed


def test_what_the_resource_pass_has_said_the_stack_does_not_repeat() -> None:
    server = Given(DEPLOYMENT_TYPE, limited("30Gi"))
    assert judge_stack(RULE, server, node_group("trn1.2xlarge")).passed


@pytest.mark.parametrize(
    ("model", "instance_type", "memory"),
    [("Qwen/Qwen3-4B", "trn1.2xlarge", "29Gi"), ("Qwen/Qwen3-8B", "inf2.xlarge", "13Gi")],
)
def test_the_models_that_broke_the_measured_nodes_are_refused_and_pass_where_they_fit(
    model: str, instance_type: str, memory: str
) -> None:
    props = with_value(serving(model, limited(memory)), SELECTOR, {TYPE: instance_type})
    [message] = judge(RULE, props).violations
    assert f"for {model}, which peaks at" in message
    assert judge(RULE, with_value(limited("48Gi", props), SELECTOR, {TYPE: "inf2.8xlarge"})).passed


@pytest.mark.parametrize(
    "arguments", [["--model=Qwen/Qwen3-8B"], ["--model", "Qwen/Qwen3-8B"], ["vllm serve 'Qwen/Qwen3-8B'"]]
)
def test_the_model_is_found_in_each_way_to_name_it(arguments: list[str]) -> None:
    assert judge(RULE, with_value(COMPLIANT_DEPLOYMENT, (*SERVER, "args"), arguments)).violations


def test_a_model_of_unknown_size_and_a_container_that_loads_none_are_left_alone() -> None:
    assert judge(RULE, serving("someone/private-70B")).passed
    benchmark = with_value(COMPLIANT_DEPLOYMENT, (*SIDECAR, "args"), ["--model=Qwen/Qwen3-8B"])
    assert judge(RULE, benchmark).passed


def test_only_neuron_pods_are_judged() -> None:
    props = without(limited("900Gi"), (*SERVER, "resources", "limits", "aws.amazon.com/neuron"))
    assert judge(RULE, props).passed
    assert judge(RULE, with_value(props, (*SERVER, "resources", "limits", "nvidia.com/gpu"), 1)).passed


def test_missing_and_unreadable_limits_are_left_to_memory_limits() -> None:
    assert judge(RULE, without(COMPLIANT_DEPLOYMENT, (*SERVER, *LIMIT))).passed
    assert judge(RULE, limited("much")).passed


def test_an_unknown_limit_hides_nothing_that_is_known() -> None:
    verdict = judge(RULE, limited(UNKNOWN_STRING_VALUE))
    assert verdict.violations == ()
    assert "resources.limits.memory" in verdict.unjudged
    both = with_value(limited(UNKNOWN_STRING_VALUE), (*SIDECAR, *LIMIT), "31Gi")
    assert len(judge(RULE, both).violations) == 1
    assert judge(RULE, with_value(limited("30Gi"), (*SELECTOR, TYPE), UNKNOWN_STRING_VALUE)).violations == ()
