"""Every row of the table of workload kinds: pod specs are found where the kind keeps them."""

import pytest

from policy.rule import Rule
from policy.rules import (
    graceful_drain,
    guarded_endpoint,
    image_line_matches_accelerator,
    memory_limits,
    no_plaintext_hf_token,
    nodepool_disruption,
    pinned_image,
    probes,
    rollout_capacity,
)
from policy.workload_kinds import WORKLOAD_KINDS
from tests.policy.fixtures import (
    ALL_KINDS,
    COMPLIANT_DEPLOYMENT,
    COMPLIANT_POD_SPEC,
    CUSTOM_RESOURCE_TYPE,
    DEPLOYMENT_TYPE,
    PARTIAL_KINDS,
    TOKEN,
    Props,
    custom_resource,
    thawed,
    with_value,
    without,
)
from tests.policy.judging import Given, judge, judge_stack

EVERY_KIND = ALL_KINDS | PARTIAL_KINDS
BARE_SERVER = {"name": "server", "image": "vllm/vllm-openai:v0.11.0", "resources": {"limits": {"nvidia.com/gpu": "1"}}}


def test_no_row_is_without_a_fixture() -> None:
    tried = set()
    for make in EVERY_KIND.values():
        resource_type, props = make(thawed(COMPLIANT_POD_SPEC))
        _, api_version, kind = [*resource_type.split(":", 2), ""][:3]
        group = props.get("apiVersion", api_version).rpartition("/")[0]
        tried.add((group, props.get("kind", kind)))
    assert set(WORKLOAD_KINDS) <= tried


@pytest.mark.parametrize("kind", EVERY_KIND)
@pytest.mark.parametrize(
    ("rule", "field", "wrong"),
    [
        (no_plaintext_hf_token.RULE, "args", [f"--hf-token={TOKEN}"]),
        (pinned_image.RULE, "image", "vllm/vllm-openai:latest"),
    ],
    ids=["token", "image"],
)
def test_what_stands_in_a_pod_spec_is_judged_in_every_kind(kind: str, rule: Rule, field: str, wrong: object) -> None:
    resource_type, props = EVERY_KIND[kind](thawed(COMPLIANT_POD_SPEC))
    assert judge(rule, props, resource_type).passed
    resource_type, props = EVERY_KIND[kind](with_value(COMPLIANT_POD_SPEC, ("containers", 0, field), wrong))
    assert len(judge(rule, props, resource_type).violations) == 1


@pytest.mark.parametrize("kind", PARTIAL_KINDS)
@pytest.mark.parametrize("rule", [memory_limits.RULE, probes.RULE, graceful_drain.RULE], ids=lambda rule: rule.id)
def test_what_is_missing_may_stand_in_the_object_that_completes_it(kind: str, rule: Rule) -> None:
    resource_type, props = PARTIAL_KINDS[kind]({"containers": [BARE_SERVER]})
    assert judge(rule, props, resource_type).passed
    resource_type, props = ALL_KINDS["Deployment"]({"containers": [BARE_SERVER]})
    assert judge(rule, props, resource_type).violations


# A stack, beside which an object with the same pod spec is a violation if it runs pods.
SURGING = with_value(COMPLIANT_DEPLOYMENT, ("spec", "strategy", "rollingUpdate"), {"maxSurge": 1})
TWO_NODES = Given("aws:eks/nodeGroup:NodeGroup", {"instanceTypes": ["trn1.2xlarge"], "scalingConfig": {"maxSize": 2}})
NEWER_IMAGE = "public.ecr.aws/neuron/pytorch-inference-vllm-neuronx:0.24.0-neuronx-py313"
ANYWHERE = without(with_value(COMPLIANT_POD_SPEC, ("containers", 0, "image"), NEWER_IMAGE), ("nodeSelector",))
POOL = {
    "disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "1m"},
    "template": {
        "spec": {
            "requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["trn1.2xlarge"]}]
        }
    },
}
MARKED = with_value(
    COMPLIANT_DEPLOYMENT,
    ("spec", "template", "metadata", "annotations"),
    {"karpenter.sh/do-not-disrupt": "true"},
)
OPEN = {"metadata": {"name": "open"}, "spec": {"type": "LoadBalancer", "selector": {"app": "vllm"}}}


@pytest.mark.parametrize(
    ("rule", "stack", "pod"),
    [
        (rollout_capacity.RULE, [TWO_NODES, Given(DEPLOYMENT_TYPE, SURGING, "surging")], COMPLIANT_POD_SPEC),
        (image_line_matches_accelerator.RULE, [TWO_NODES], ANYWHERE),
        (
            nodepool_disruption.RULE,
            [
                Given(CUSTOM_RESOURCE_TYPE, custom_resource("karpenter.sh/v1", "NodePool", POOL), "pool"),
                Given(DEPLOYMENT_TYPE, MARKED, "marked"),
            ],
            COMPLIANT_POD_SPEC,
        ),
        (guarded_endpoint.RULE, [Given("kubernetes:core/v1:Service", OPEN, "open")], COMPLIANT_POD_SPEC),
    ],
    ids=lambda value: value.id if isinstance(value, Rule) else "",
)
def test_a_description_runs_no_pods(rule: Rule, stack: list[Given], pod: Props) -> None:
    labels = {"metadata": {"name": "vllm", "labels": {"app": "vllm"}}}
    for kind, is_broken in (("Pod", True), ("ServingRuntime", False)):
        resource_type, props = EVERY_KIND[kind](thawed(pod))
        verdict = judge_stack(rule, *stack, Given(resource_type, props | labels, kind))
        assert bool(verdict.violations) is is_broken
