"""nodepool-limits and nodepool-disruption: Karpenter pools for accelerators, and what is none."""

from typing import Any

import pytest
from pulumi_policy.proxy import UNKNOWN_OBJECT_VALUE, UNKNOWN_STRING_VALUE

from policy.rules.nodepool_disruption import RULE as DISRUPTION
from policy.rules.nodepool_limits import RULE as LIMITS
from tests.policy.fixtures import (
    COMPLIANT_DEPLOYMENT,
    CUSTOM_RESOURCE_TYPE,
    DEPLOYMENT_TYPE,
    POD,
    Props,
    custom_resource,
    with_value,
    without,
)
from tests.policy.judging import Given, judge, judge_stack

FAMILY = {"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["trn1"]}
SPEC: Props = {
    "template": {"spec": {"requirements": [FAMILY]}},
    "limits": {"cpu": "16"},
    "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "10m"},
}
ANNOTATIONS = ("spec", "template", "metadata", "annotations")
MARK = {"karpenter.sh/do-not-disrupt": "true"}


def pool(spec: Props = SPEC, version: str = "v1") -> Given:
    return Given(CUSTOM_RESOURCE_TYPE, custom_resource(f"karpenter.sh/{version}", "NodePool", spec, "neuron"), "pool")


def requiring(*requirements: Props, taints: list[Props] | None = None) -> Props:
    template = {"spec": {"requirements": list(requirements), "taints": taints or []}}
    return with_value(without(SPEC, ("limits",)), ("template",), template)


def disrupting(disruption: Any) -> Given:
    return pool(without(SPEC, ("disruption",)) if disruption is None else with_value(SPEC, ("disruption",), disruption))


def test_the_compliant_pool_passes_both() -> None:
    assert judge(LIMITS, pool().props, CUSTOM_RESOURCE_TYPE).passed
    assert judge_stack(DISRUPTION, pool()).passed


@pytest.mark.parametrize("limits", [None, {}, {"cpu": None}])
def test_a_pool_without_limits_is_a_violation(limits: Any) -> None:
    [message] = judge(LIMITS, pool(with_value(SPEC, ("limits",), limits)).props, CUSTOM_RESOURCE_TYPE).violations
    assert "NodePool serving/neuron (spec.limits): no limits" in message


@pytest.mark.parametrize("limits", [{"cpu": 8}, {"aws.amazon.com/neuron": "2"}, {"memory": "64Gi"}, {"nodes": 2}])
def test_any_limit_is_one(limits: Any) -> None:
    assert judge(LIMITS, pool(with_value(SPEC, ("limits",), limits)).props, CUSTOM_RESOURCE_TYPE).passed


@pytest.mark.parametrize(
    "spec",
    [
        requiring(FAMILY),
        requiring({"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["inf2.xlarge"]}),
        requiring({"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["inf", "trn"]}),
        requiring({"key": "eks.amazonaws.com/instance-family", "operator": "In", "values": ["g6", "p5en"]}),
        requiring({"key": "karpenter.k8s.aws/instance-accelerator-name", "operator": "In", "values": ["trainium"]}),
        requiring({"key": "karpenter.k8s.aws/instance-gpu-count", "operator": "Gt", "values": ["0"]}),
        requiring(taints=[{"key": "aws.amazon.com/neuron", "effect": "NoSchedule"}]),
        requiring(taints=[{"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}]),
    ],
)
def test_a_pool_that_names_an_accelerator_is_one_for_accelerators(spec: Props) -> None:
    assert judge(LIMITS, pool(spec).props, CUSTOM_RESOURCE_TYPE).violations


@pytest.mark.parametrize(
    "spec",
    [
        requiring(),
        requiring({"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}),
        requiring({"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["c", "m", "r"]}),
        requiring({"key": "karpenter.k8s.aws/instance-category", "operator": "NotIn", "values": ["g", "p"]}),
        requiring({"key": "karpenter.k8s.aws/instance-gpu-count", "operator": "DoesNotExist"}),
        requiring({"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m7i.large", "t3.medium"]}),
        requiring(taints=[{"key": "dedicated", "value": "neuron", "effect": "NoSchedule"}]),
    ],
)
def test_a_pool_for_anything_is_left_alone(spec: Props) -> None:
    assert judge(LIMITS, pool(spec).props, CUSTOM_RESOURCE_TYPE).passed
    assert judge_stack(DISRUPTION, pool(without(spec, ("disruption",)))).passed


@pytest.mark.parametrize(
    "disruption",
    [
        None,
        {},
        {"consolidationPolicy": "WhenEmptyOrUnderutilized"},
        {"consolidationPolicy": "WhenUnderutilized", "consolidateAfter": "30m"},
        {"budgets": [{"nodes": "10%"}]},
        {"budgets": [{"nodes": "0", "schedule": "0 8 * * *", "duration": "8h"}]},
        {"budgets": [{"nodes": "0", "reasons": ["Drifted", "Empty"]}]},
    ],
)
def test_consolidating_under_used_nodes_is_a_violation(disruption: Any) -> None:
    verdict = judge_stack(DISRUPTION, disrupting(disruption))
    assert "under-used nodes are consolidated" in verdict.violations[0]
    assert verdict.urns == (pool().urn,)


@pytest.mark.parametrize(
    "disruption",
    [
        {"consolidationPolicy": "WhenEmpty"},
        {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "Never"},
        {"budgets": [{"nodes": "0"}]},
        {"budgets": [{"nodes": "10%"}, {"nodes": "0%", "reasons": ["Underutilized"]}]},
        {"budgets": [{"nodes": 0}]},
    ],
)
def test_what_consolidates_no_node_in_use_passes(disruption: Any) -> None:
    assert judge_stack(DISRUPTION, disrupting(disruption)).passed


def test_marked_pods_are_left_where_they_are() -> None:
    marked = Given(DEPLOYMENT_TYPE, with_value(COMPLIANT_DEPLOYMENT, ANNOTATIONS, MARK), "marked")
    plain = Given(DEPLOYMENT_TYPE, COMPLIANT_DEPLOYMENT, "plain")
    refused = Given(
        DEPLOYMENT_TYPE, with_value(COMPLIANT_DEPLOYMENT, ANNOTATIONS, {next(iter(MARK)): "false"}), "refused"
    )
    assert judge_stack(DISRUPTION, disrupting(None), marked).passed
    assert judge_stack(DISRUPTION, disrupting(None), plain).violations
    assert judge_stack(DISRUPTION, disrupting(None), refused).violations
    assert judge_stack(DISRUPTION, disrupting(None), marked, plain).violations
    elsewhere = {"node.kubernetes.io/instance-type": "inf2.xlarge"}
    other = Given(DEPLOYMENT_TYPE, with_value(plain.props, (*POD, "nodeSelector"), elsewhere), "other")
    assert judge_stack(DISRUPTION, disrupting(None), marked, other).passed
    assert judge_stack(DISRUPTION, disrupting(None), other).violations


def test_a_pool_may_mark_its_nodes() -> None:
    spec = with_value(without(SPEC, ("disruption",)), ("template", "metadata"), {"annotations": MARK})
    assert judge_stack(DISRUPTION, pool(spec)).passed


def test_the_old_version_has_the_same_meaning() -> None:
    spec = with_value(SPEC, ("disruption",), {"consolidationPolicy": "WhenUnderutilized"})
    assert judge_stack(DISRUPTION, pool(spec, "v1beta1")).violations


@pytest.mark.parametrize(
    "disruption",
    [
        UNKNOWN_OBJECT_VALUE,
        {"consolidationPolicy": UNKNOWN_STRING_VALUE},
        {"budgets": [{"nodes": UNKNOWN_STRING_VALUE}]},
    ],
)
def test_unknown_disruption_is_said_to_be_unjudged(disruption: Any) -> None:
    verdict = judge_stack(DISRUPTION, disrupting(disruption))
    assert (verdict.violations, "spec.disruption" in verdict.unjudged) == ((), True)


def test_unknown_limits_are_said_to_be_unjudged() -> None:
    verdict = judge(LIMITS, pool(with_value(SPEC, ("limits",), UNKNOWN_OBJECT_VALUE)).props, CUSTOM_RESOURCE_TYPE)
    assert (verdict.violations, "spec.limits" in verdict.unjudged) == ((), True)
    assert (
        judge(
            LIMITS, pool(with_value(SPEC, ("limits",), {"cpu": UNKNOWN_STRING_VALUE})).props, CUSTOM_RESOURCE_TYPE
        ).violations
        == ()
    )
