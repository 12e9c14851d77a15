"""Exceptions: what counts excuses and is reported; what does not leaves the violation standing and says why."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from pulumi_policy import ResourceValidationArgs, Severity, StackValidationArgs
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policy.exceptions import DEFAULT_LONGEST_DAYS, KEY_PREFIX, today
from policy.policies import policies
from policy.resources import Stack
from policy.rule import Rule, Violation
from policy.rules import RULES
from policy.values import mark_unknown
from tests.policy.fixtures import (
    COMPLIANT_DEPLOYMENT,
    DEPLOYMENT_TYPE,
    SIDECAR,
    TOKEN,
    Props,
    thawed,
    with_value,
    without,
)
from tests.policy.judging import OPTIONS, Given, policy_resource

REPORT = "policy-exceptions"
RULE = "memory-limits"
KEY = KEY_PREFIX + RULE
NEXT_MONTH = (today() + timedelta(days=30)).isoformat()
LONGEST = (today() + timedelta(days=DEFAULT_LONGEST_DAYS)).isoformat()
TOO_LONG = (today() + timedelta(days=DEFAULT_LONGEST_DAYS + 1)).isoformat()
YESTERDAY = (today() - timedelta(days=1)).isoformat()
REASON = "the exporter's peak is being measured"

Findings = list[tuple[str, str]]


def without_limit(annotations: Mapping[str, Any]) -> Props:
    props = without(COMPLIANT_DEPLOYMENT, (*SIDECAR, "resources"))
    return with_value(props, ("metadata", "annotations"), annotations)


def judge_resource(props: Mapping[str, Any], resource_type: str = DEPLOYMENT_TYPE, **config: Any) -> Findings:
    """What the whole pack reports on one resource, with the configuration of each rule (dashes as underscores)."""
    given = Given(resource_type, props)
    rules = [one for one in RULES if one.judge_resource]
    return _ask(
        rules,
        lambda own: ResourceValidationArgs(
            given.type, mark_unknown(thawed(props)), given.urn, given.name, OPTIONS, None, own
        ),
        config,
    )


def judge_stack(rules: Sequence[Rule], *given: Given, **config: Any) -> Findings:
    """What a pack of these rules reports on a stack."""
    return _ask(rules, lambda own: StackValidationArgs([policy_resource(one) for one in given], own), config)


def _ask(rules: Sequence[Rule], args: Callable[[Any], Any], config: Mapping[str, Any]) -> Findings:
    found: Findings = []
    for policy in policies(rules):
        validate: Any = policy
        validate.validate(args(config.get(policy.name.replace("-", "_"))), partial(_note, found, policy.name))
    return found


def _note(found: Findings, name: str, message: str, _urn: str | None = None) -> None:
    found.append((name, message))


def test_an_exception_excuses_its_rule_and_is_reported_with_reason_and_end() -> None:
    assert judge_resource(without_limit({KEY: f"{NEXT_MONTH} {REASON}"})) == [
        (
            REPORT,
            "Deployment serving/vllm, container metrics (spec.template.spec.containers[1]): memory-limits is excepted "
            f"until {NEXT_MONTH} by annotation {KEY}: no memory limit.\n"
            f"Why: {REASON}\n"
            "Fix: before that day set spec.template.spec.containers[1].resources.limits.memory to the most it may "
            'take, such as "4Gi"; then remove the exception',
        )
    ]


@pytest.mark.parametrize("until", [today().isoformat(), LONGEST])
def test_an_exception_holds_through_its_last_day_and_may_last_a_year(until: str) -> None:
    assert [name for name, _ in judge_resource(without_limit({KEY: f"{until} {REASON}"}))] == [REPORT]


def test_the_longest_term_is_a_matter_of_the_rules_configuration() -> None:
    props = without_limit({KEY: f"{NEXT_MONTH} {REASON}"})
    [(name, message)] = judge_resource(props, memory_limits={"longestExceptionDays": 29})
    assert name == RULE
    latest = today() + timedelta(days=29)
    assert f"after {latest}, the latest day allowed (longestExceptionDays: 29)" in message
    assert [name for name, _ in judge_resource(props, memory_limits={"longestExceptionDays": 30})] == [REPORT]
    assert [name for name, _ in judge_resource(props, probes={"longestExceptionDays": 29})] == [REPORT]
    longer = without_limit({KEY: f"{TOO_LONG} {REASON}"})
    assert [name for name, _ in judge_resource(longer, memory_limits={"longestExceptionDays": 400})] == [REPORT]


@pytest.mark.parametrize(
    ("annotations", "problem"),
    [
        ({KEY: f"{YESTERDAY} {REASON}"}, f"it ended on {YESTERDAY}"),
        (
            {KEY: f"{TOO_LONG} {REASON}"},
            f"it ends on {TOO_LONG}, after {LONGEST}, the latest day allowed (longestExceptionDays: 366)",
        ),
        (
            {KEY: f"9999-12-31 {REASON}"},
            f"it ends on 9999-12-31, after {LONGEST}, the latest day allowed (longestExceptionDays: 366)",
        ),
        ({KEY: NEXT_MONTH}, "it gives no reason"),
        ({KEY: f"{NEXT_MONTH}   "}, "it gives no reason"),
        ({KEY: REASON}, "it does not say until when, as YYYY-MM-DD"),
        ({KEY: ""}, "it does not say until when, as YYYY-MM-DD"),
        ({KEY: f"31.03.2027 {REASON}"}, "it does not say until when, as YYYY-MM-DD"),
        ({KEY: f"2027-02-30 {REASON}"}, "it does not say until when, as YYYY-MM-DD"),
        ({KEY: f"20270331 {REASON}"}, "it does not say until when, as YYYY-MM-DD"),
        ({KEY: 20270331}, "it does not say until when, as YYYY-MM-DD"),
        ({KEY: UNKNOWN_STRING_VALUE}, "it does not say until when, as YYYY-MM-DD"),
        ({KEY_PREFIX + "memory-limit": f"{NEXT_MONTH} {REASON}"}, "the pack has no rule memory-limit"),
        ({KEY_PREFIX: f"{NEXT_MONTH} {REASON}"}, "the pack has no rule "),
    ],
)
def test_an_exception_that_does_not_count_leaves_the_violation_and_is_named(annotations: Props, problem: str) -> None:
    [(name, message)] = judge_resource(without_limit(annotations))
    assert name == RULE
    [key] = annotations
    assert message.splitlines()[-1] == f"Exception by annotation {key} does not count: {problem}"


@pytest.mark.parametrize("annotations", [None, "text", [], {"other": "2027-03-31 x"}, UNKNOWN_STRING_VALUE])
def test_other_annotations_are_no_exception(annotations: Any) -> None:
    [(name, message)] = judge_resource(without_limit(annotations))
    assert name == RULE
    assert "Exception" not in message


def test_an_exception_from_one_rule_excuses_no_other_and_no_other_object() -> None:
    props = without_limit({KEY_PREFIX + "probes": f"{NEXT_MONTH} {REASON}"})
    assert [name for name, _ in judge_resource(props)] == [RULE]
    items = [without_limit({KEY: f"{NEXT_MONTH} {REASON}"}), with_value(without_limit({}), ("metadata", "name"), "b")]
    found = judge_resource({"kind": "List", "apiVersion": "v1", "items": items}, "kubernetes:core/v1:List")
    assert [(name, message.split(",")[0]) for name, message in found] == [
        (RULE, "Deployment serving/b"),
        (REPORT, "Deployment serving/vllm"),
    ]


def test_one_exception_that_counts_is_enough() -> None:
    entry = {"resource": "given", "until": YESTERDAY, "reason": REASON}
    props = without_limit({KEY: f"{NEXT_MONTH} {REASON}"})
    assert [name for name, _ in judge_resource(props, memory_limits={"exceptions": [entry]})] == [REPORT]


OPEN_GROUP: Props = {"ingress": [{"protocol": "tcp", "fromPort": 22, "toPort": 22, "cidrBlocks": ["0.0.0.0/0"]}]}
SSH_KEY = KEY_PREFIX + "no-open-ssh"


def test_an_aws_resource_states_it_by_tag() -> None:
    group = {**OPEN_GROUP, "tags": {SSH_KEY: f"{NEXT_MONTH} bastion in the making"}}
    [(name, message)] = judge_resource(group, "aws:ec2/securityGroup:SecurityGroup")
    assert name == REPORT
    assert f"no-open-ssh is excepted until {NEXT_MONTH} by tag {SSH_KEY}" in message
    expired = {**OPEN_GROUP, "tags": {SSH_KEY: f"{YESTERDAY} bastion in the making"}}
    [(name, message)] = judge_resource(expired, "aws:ec2/securityGroup:SecurityGroup")
    assert name == "no-open-ssh"
    assert f"by tag {SSH_KEY} does not count: it ended on {YESTERDAY}" in message


def test_tags_of_aws_native_are_a_list() -> None:
    access = {"ec2SshKey": "key"}
    tags = [{"key": "Name", "value": "x"}, {"key": SSH_KEY, "value": f"{NEXT_MONTH} bastion in the making"}]
    found = judge_resource({"remoteAccess": access, "tags": tags}, "aws-native:eks:Nodegroup")
    assert [name for name, _ in found] == [REPORT]


@pytest.mark.parametrize("resource", ["given", Given(DEPLOYMENT_TYPE, {}).urn, "Deployment serving/vllm"])
def test_the_configuration_excepts_a_resource_by_urn_name_or_object(resource: str) -> None:
    entry = {"resource": resource, "until": NEXT_MONTH, "reason": REASON}
    [(name, message)] = judge_resource(without_limit({}), memory_limits={"exceptions": [entry]})
    assert name == REPORT
    assert f"until {NEXT_MONTH} by exceptions[0] in the configuration of memory-limits" in message
    other = {**entry, "resource": "other"}
    assert [name for name, _ in judge_resource(without_limit({}), memory_limits={"exceptions": [other]})] == [RULE]


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"resource": "given", "until": YESTERDAY, "reason": REASON}, f"it ended on {YESTERDAY}"),
        (
            {"resource": "given", "until": TOO_LONG, "reason": REASON},
            f"it ends on {TOO_LONG}, after {LONGEST}, the latest day allowed (longestExceptionDays: 366)",
        ),
        ({"resource": "given", "until": NEXT_MONTH}, "it gives no reason"),
        ({"resource": "given", "reason": REASON}, "it does not say until when, as YYYY-MM-DD"),
        ({"resource": "given", "until": 3, "reason": 4}, "it does not say until when, as YYYY-MM-DD"),
    ],
)
def test_a_configured_exception_that_does_not_count_is_named(entry: Props, problem: str) -> None:
    [(name, message)] = judge_resource(without_limit({}), memory_limits={"exceptions": [entry]})
    assert name == RULE
    assert message.endswith(f"exceptions[0] in the configuration of memory-limits does not count: {problem}")


@pytest.mark.parametrize("exceptions", [None, "text", 3, {}, [None, "text", {}, {"resource": None}]])
def test_a_nonsensical_configuration_excepts_nothing(exceptions: Any) -> None:
    [(name, _)] = judge_resource(without_limit({}), memory_limits={"exceptions": exceptions})
    assert name == RULE


def test_a_finding_on_the_stack_is_excepted_by_configuration() -> None:
    quota = next(one for one in RULES if one.id == "vcpu-quota")
    pool = Given("aws:eks/nodeGroup:NodeGroup", {"instanceTypes": ["trn1.2xlarge"], "scalingConfig": {"maxSize": 3}})
    config: Props = {"quotas": {"trn": 8}}
    assert [name for name, _ in judge_stack([quota], pool, vcpu_quota=config)] == ["vcpu-quota"]
    config["exceptions"] = [{"resource": "stack", "until": NEXT_MONTH, "reason": "increase requested"}]
    assert [name for name, _ in judge_stack([quota], pool, vcpu_quota=config)] == [REPORT]


def of_every_object(stack: Stack) -> Iterator[Violation]:
    for one in stack.resources:
        yield Violation("wrong", str(one), "mend it", one)


def test_a_stack_rule_gets_exceptions_like_any_other() -> None:
    rule = Rule("some-rule", "Title", Severity.LOW, "because", ("mend",), judge_stack=of_every_object)
    tagged = Given("a:b:C", {"tags": {KEY_PREFIX + "some-rule": f"{NEXT_MONTH} {REASON}"}}, "tagged")
    found = judge_stack([rule], tagged, Given("a:b:C", {}, "plain"))
    assert [(name, message.split(": ")[0]) for name, message in found] == [
        ("some-rule", "a:b:C plain"),
        (REPORT, "a:b:C tagged"),
    ]


def test_what_was_reported_is_not_reported_again() -> None:
    pack: list[Any] = policies(RULES)
    report = pack[-1]
    rule = next(one for one in pack if one.name == RULE)
    props = without_limit({KEY: f"{NEXT_MONTH} {REASON}"})
    args = ResourceValidationArgs(DEPLOYMENT_TYPE, thawed(props), "urn", "name", OPTIONS, None, None)
    found: list[Findings] = []
    for asked in ([rule, report], [report], [rule, rule, report]):
        found.append([])
        for policy in asked:
            policy.validate(args, partial(_note, found[-1], policy.name))
    assert [len(one) for one in found] == [1, 0, 1]


def test_a_reason_shows_no_token() -> None:
    [(_, message)] = judge_resource(without_limit({KEY: f"{NEXT_MONTH} because of {TOKEN}"}))
    assert "because of <redacted>" in message


def test_the_failure_of_a_rule_cannot_be_excepted() -> None:
    def failing(_: Stack) -> Iterator[Violation]:
        raise KeyError("x")

    rule = Rule("some-rule", "Title", Severity.LOW, "because", ("mend",), judge_stack=failing)
    entry = {"resource": "stack", "until": NEXT_MONTH, "reason": REASON}
    [(name, message)] = judge_stack([rule], some_rule={"exceptions": [entry]})
    assert name == "some-rule"
    assert "the rule itself failed" in message
