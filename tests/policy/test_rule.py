"""What every rule promises: its findings reach the engine, its failures hide nothing, and it explains itself."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from pulumi_policy import EnforcementLevel, Policy, ResourceValidationPolicy, Severity, StackValidationPolicy

from policy.resources import Resource, Stack
from policy.rule import Rule, Violation
from policy.rules import RULES
from tests.policy.fixtures import COMPLIANT_DEPLOYMENT, DEPLOYMENT_TYPE, POD, SERVER, TOKEN, Path, with_value
from tests.policy.judging import Given, judge, judge_stack

FINDING = Violation(what="wrong", where="there", fix="mend it")
IDS = [rule.id for rule in RULES]


def rule(**more: Any) -> Rule:
    return Rule(id="some-rule", title="Title", severity=Severity.LOW, why="because", remediation=("mend",), **more)


def test_the_rules_are_those_of_the_design_and_each_stands_once() -> None:
    assert sorted(IDS) == ["memory-limits", "no-plaintext-hf-token", "probes", "rollout-capacity"]


@pytest.mark.parametrize("one", RULES, ids=IDS)
def test_every_rule_explains_itself(one: Rule) -> None:
    policy: Policy = one.policy()
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", policy.name)
    assert policy.description == policy.display_name == one.title
    assert policy.enforcement_level is EnforcementLevel.MANDATORY
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
    messages = judge(one, props).violations
    messages += judge_stack(one, Given(DEPLOYMENT_TYPE, props)).violations if one.judge_stack else ()
    assert not any("the rule itself failed" in message for message in messages)


def test_a_message_says_where_what_why_and_how_to_mend_it() -> None:
    verdict = judge(rule(judge_resource=lambda _: [FINDING]), COMPLIANT_DEPLOYMENT)
    assert verdict.violations == ("there: wrong.\nWhy: because\nFix: mend it",)


def test_a_finding_may_have_a_reason_of_its_own() -> None:
    finding = Violation(what="wrong", where="there", fix="mend it", why="another")
    assert "Why: another" in judge(rule(judge_resource=lambda _: [finding]), {}).violations[0]


def test_no_message_holds_a_token_whatever_a_rule_writes() -> None:
    finding = Violation(what=TOKEN, where=f"a{TOKEN}", fix=f"remove {TOKEN}")
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


def test_a_rule_is_one_policy_of_the_kind_that_its_judges_need() -> None:
    resource_only = rule(judge_resource=lambda _: []).policy()
    stack_only = rule(judge_stack=lambda _: []).policy()
    both = rule(judge_resource=lambda _: [], judge_stack=lambda _: []).policy()
    assert [isinstance(one, ResourceValidationPolicy) for one in (resource_only, stack_only, both)] == [
        True,
        False,
        True,
    ]
    assert [isinstance(one, StackValidationPolicy) for one in (resource_only, stack_only, both)] == [False, True, True]


def test_a_rule_with_two_judges_asks_each_in_its_own_pass() -> None:
    def in_resource(resource: Resource) -> Iterator[Violation]:
        yield Violation(f"resource {resource.name}", "", "")

    def in_stack(stack: Stack) -> Iterator[Violation]:
        yield Violation(f"stack of {len(stack.resources)}", "", "")

    both = rule(judge_resource=in_resource, judge_stack=in_stack)
    assert "resource given" in judge(both, {}).violations[0]
    assert "stack of 2" in judge_stack(both, Given("a:b:C", {}, "one"), Given("a:b:C", {}, "two")).violations[0]
