"""What every rule promises: its findings reach the engine, its failures hide nothing, and it explains itself."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from pulumi_policy import EnforcementLevel, Policy, ResourceValidationPolicy, Severity, StackValidationPolicy

from policy.policies import policies
from policy.resources import Resource, Stack
from policy.rule import Rule, Unjudged, Violation
from policy.rules import RULES
from tests.policy.fixtures import COMPLIANT_DEPLOYMENT, DEPLOYMENT_TYPE, POD, SERVER, TOKEN, Path, with_value
from tests.policy.judging import Given, judge, judge_stack

FINDING = Violation(what="wrong", where="there", fix="mend it", subject=None)
IDS = [rule.id for rule in RULES]


def policy_of(one: Rule) -> Policy:
    return policies([one])[0]


def rule(**more: Any) -> Rule:
    return Rule(id="some-rule", title="Title", severity=Severity.LOW, why="because", remediation=("mend",), **more)


# What the semantics of the pack promise: every rule is mandatory but these.
ADVISORY = {"supported-image-line", "verified-ami"}
MANDATORY = {
    "autoscaler-owns-replicas",
    "graceful-drain",
    "guarded-endpoint",
    "host-memory-fit",
    "image-line-matches-accelerator",
    "memory-limits",
    "no-open-ssh",
    "no-plaintext-hf-token",
    "nodepool-disruption",
    "nodepool-limits",
    "pinned-ami",
    "pinned-image",
    "private-model-bucket",
    "probes",
    "queue-based-autoscaling",
    "rollout-capacity",
    "shared-cache-access-mode",
    "vcpu-quota",
}


def test_the_rules_and_their_levels_are_those_of_the_semantics_and_each_stands_once() -> None:
    levels = {rule.id: rule.level for rule in RULES}
    assert len(levels) == len(RULES)
    assert {one for one, level in levels.items() if level is EnforcementLevel.MANDATORY} == MANDATORY
    assert {one for one, level in levels.items() if level is EnforcementLevel.ADVISORY} == ADVISORY


@pytest.mark.parametrize("one", RULES, ids=IDS)
def test_every_rule_explains_itself(one: Rule) -> None:
    policy = policy_of(one)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", policy.name)
    assert policy.description == policy.display_name == one.title
    assert policy.enforcement_level is one.level
    assert policy.severity is one.severity
    assert policy.url == f"docs/policies/{one.id}.md"
    assert (policy.remediation_steps or "").startswith("1. ")
    assert re.search(r"\d|everyone", one.why)


@pytest.mark.parametrize("one", RULES, ids=IDS)
def test_an_empty_stack_and_a_strange_resource_are_no_violation(one: Rule) -> None:
    if one.judge_stack is not None:
        assert judge_stack(one).passed
        assert judge_stack(one, Given("pulumi:pulumi:Stack", {})).passed
    if one.judge_resource is not None:
        assert judge(one, {}).passed
        assert judge(one, COMPLIANT_DEPLOYMENT, "kubernetes:").passed
        assert judge(one, COMPLIANT_DEPLOYMENT, "random:index/randomId:RandomId").passed


@pytest.mark.parametrize("one", RULES, ids=IDS)
@pytest.mark.parametrize("value", [None, "text", 3, True, [], {}, [None, 3, "text", [], {}]])
@pytest.mark.parametrize(
    "path",
    [
        ("spec",),
        ("spec", "strategy"),
        ("spec", "template"),
        POD,
        (*POD, "containers"),
        (*SERVER, "resources"),
        (*SERVER, "resources", "limits"),
        (*SERVER, "env"),
        (*SERVER, "args"),
        (*SERVER, "startupProbe"),
        ("metadata",),
    ],
)
def test_nonsense_in_a_manifest_makes_no_rule_fail(one: Rule, path: Path, value: object) -> None:
    props = with_value(COMPLIANT_DEPLOYMENT, path, value)
    assert_no_failure(one, Given(DEPLOYMENT_TYPE, props))


# Resources that the rules read besides Deployments, each with the properties that they look into.
OTHERS = [
    ("kubernetes:core/v1:Service", ("spec", "selector")),
    ("kubernetes:core/v1:PersistentVolumeClaim", ("spec", "accessModes")),
    ("kubernetes:networking.k8s.io/v1:Ingress", ("spec", "rules")),
    ("kubernetes:autoscaling/v2:HorizontalPodAutoscaler", ("spec", "metrics")),
    ("kubernetes:keda.sh/v1alpha1:ScaledObject", ("spec", "triggers")),
    ("kubernetes:karpenter.sh/v1:NodePool", ("spec", "template", "spec", "requirements")),
    ("kubernetes:karpenter.sh/v1:NodePool", ("spec", "limits")),
    ("kubernetes:karpenter.sh/v1:NodePool", ("spec", "disruption")),
    ("kubernetes:karpenter.k8s.aws/v1:EC2NodeClass", ("spec", "amiSelectorTerms")),
    ("aws:ec2/securityGroup:SecurityGroup", ("ingress",)),
    ("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule", ("fromPort",)),
    ("aws:eks/nodeGroup:NodeGroup", ("scalingConfig",)),
    ("aws:eks/nodeGroup:NodeGroup", ("instanceTypes",)),
    ("aws:eks/nodeGroup:NodeGroup", ("updateConfig",)),
    ("aws:eks/nodeGroup:NodeGroup", ("remoteAccess",)),
    ("aws:ec2/launchTemplate:LaunchTemplate", ("imageId",)),
    ("aws:s3/bucket:Bucket", ("grants",)),
    ("aws:s3/bucketPolicy:BucketPolicy", ("policy",)),
    ("aws-native:s3:BucketPolicy", ("policyDocument",)),
    ("aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock", ("bucket",)),
]


@pytest.mark.parametrize("value", [None, "text", 3, True, [], {}, [None, 3, "text", [], {}], {"a": [{}]}])
@pytest.mark.parametrize(("resource_type", "path"), OTHERS)
def test_nonsense_in_other_resources_makes_no_rule_fail(resource_type: str, path: Path, value: object) -> None:
    given = Given(resource_type, with_value({}, path, value), "other")
    for one in RULES:
        assert_no_failure(one, given)


def assert_no_failure(one: Rule, given: Given) -> None:
    messages = judge(one, given.props, given.type).violations if one.judge_resource else ()
    if one.judge_stack:
        messages += judge_stack(one, given, Given(DEPLOYMENT_TYPE, COMPLIANT_DEPLOYMENT, "server")).violations
    assert not any("the rule itself failed" in message for message in messages)


def test_a_message_says_where_what_why_and_how_to_mend_it() -> None:
    verdict = judge(rule(judge_resource=lambda _: [FINDING]), COMPLIANT_DEPLOYMENT)
    assert verdict.violations == ("there: wrong.\nWhy: because\nFix: mend it",)


def test_a_finding_may_have_a_reason_of_its_own() -> None:
    finding = Violation(what="wrong", where="there", fix="mend it", subject=None, why="another")
    assert "Why: another" in judge(rule(judge_resource=lambda _: [finding]), {}).violations[0]


def test_no_message_holds_a_token_whatever_a_rule_writes() -> None:
    finding = Violation(what=TOKEN, where=f"a{TOKEN}", fix=f"remove {TOKEN}", subject=None)
    [message] = judge(rule(judge_resource=lambda _: [finding]), {}).violations
    assert message.count("<redacted>") == 3
    assert "hf_" not in message


def failing(_: object) -> Iterator[Violation]:
    yield FINDING
    raise KeyError(TOKEN)


def test_a_failing_rule_keeps_its_findings_and_says_that_it_failed_without_quoting_a_value() -> None:
    for verdict in (judge(rule(judge_resource=failing), {}), judge_stack(rule(judge_stack=failing))):
        assert len(verdict.violations) == 2
        assert "the rule itself failed (KeyError in failing, line" in verdict.violations[1]
        assert "hf_" not in verdict.violations[1]


def test_what_a_rule_cannot_judge_is_said_beside_what_it_found() -> None:
    verdict = judge(rule(judge_resource=lambda _: [Unjudged("no quota is declared"), FINDING]), COMPLIANT_DEPLOYMENT)
    assert len(verdict.violations) == 1
    assert verdict.unjudged == "no quota is declared; everything else was judged"


def test_a_rule_is_one_policy_of_the_kind_that_its_judges_need() -> None:
    resource_only = policy_of(rule(judge_resource=lambda _: []))
    stack_only = policy_of(rule(judge_stack=lambda _: []))
    both = policy_of(rule(judge_resource=lambda _: [], judge_stack=lambda _: []))
    assert [isinstance(one, ResourceValidationPolicy) for one in (resource_only, stack_only, both)] == [
        True,
        False,
        True,
    ]
    assert [isinstance(one, StackValidationPolicy) for one in (resource_only, stack_only, both)] == [False, True, True]


def test_a_rule_with_two_judges_asks_each_in_its_own_pass() -> None:
    def in_resource(resource: Resource) -> Iterator[Violation]:
        yield Violation(f"resource {resource.name}", "", "", resource)

    def in_stack(stack: Stack) -> Iterator[Violation]:
        yield Violation(f"stack of {len(stack.resources)}", "", "", None)

    both = rule(judge_resource=in_resource, judge_stack=in_stack)
    assert "resource given" in judge(both, {}).violations[0]
    assert "stack of 2" in judge_stack(both, Given("a:b:C", {}, "one"), Given("a:b:C", {}, "two")).violations[0]
