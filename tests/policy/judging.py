"""Asking a rule in this process, through the SDK's policy object, as the engine does by gRPC."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

from pulumi_policy import (
    PolicyCustomTimeouts,
    PolicyResource,
    PolicyResourceOptions,
    ResourceValidationArgs,
    StackValidationArgs,
)
from pulumi_policy.proxy import UnknownValueError

from policy.exceptions import Ledger
from policy.policies import Enforcement
from policy.rule import Rule
from policy.rules import RULES
from policy.values import mark_unknown
from tests.policy.fixtures import DEPLOYMENT_TYPE, thawed

RULE_IDS = frozenset(rule.id for rule in RULES)
OPTIONS = PolicyResourceOptions(
    protect=False,
    ignore_changes=[],
    delete_before_replace=None,
    aliases=[],
    custom_timeouts=PolicyCustomTimeouts(0, 0, 0),
    additional_secret_outputs=[],
)


@dataclass(frozen=True)
class Verdict:
    """The findings, and what the rule says that it could not judge ("" if it saw everything)."""

    violations: tuple[str, ...]
    unjudged: str = ""
    urns: tuple[str | None, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether everything was seen and nothing found."""
        return not self.violations and not self.unjudged


@dataclass(frozen=True)
class Given:
    """A resource of a stack under test."""

    type: str
    props: Mapping[str, Any]
    name: str = "given"
    dependencies: Mapping[str, Sequence["Given"]] = field(default_factory=dict)
    ignore_changes: tuple[str, ...] = ()

    @property
    def urn(self) -> str:
        """Its URN."""
        return f"urn:pulumi:test::program::{self.type}::{self.name}"


def judge(
    rule: Rule,
    props: Mapping[str, Any],
    resource_type: str = DEPLOYMENT_TYPE,
    name: str = "given",
    config: dict[str, Any] | None = None,
) -> Verdict:
    """The verdict on one resource with these inputs."""
    urn = Given(resource_type, {}, name).urn
    values = mark_unknown(thawed(props))
    args = ResourceValidationArgs(resource_type, values, urn, name, OPTIONS, None, config)
    return _verdict(rule, args)


def judge_stack(rule: Rule, *given: Given, config: dict[str, Any] | None = None) -> Verdict:
    """The verdict on a stack of these resources."""
    resources = {one.urn: policy_resource(one) for one in given}
    for one in given:
        for key, others in one.dependencies.items():
            resources[one.urn].property_dependencies[key] = [resources[other.urn] for other in others]
    return _verdict(rule, StackValidationArgs(list(resources.values()), config))


def policy_resource(given: Given) -> PolicyResource:
    props = mark_unknown(thawed(given.props))
    options = copy(OPTIONS)
    options.ignore_changes = list(given.ignore_changes)
    return PolicyResource(given.type, props, given.urn, given.name, options, None, None, [], {})


def _verdict(rule: Rule, args: ResourceValidationArgs | StackValidationArgs) -> Verdict:
    messages: list[str] = []
    urns: list[str | None] = []

    def report(message: str, urn: str | None = None) -> None:
        messages.append(message)
        urns.append(urn)

    unjudged = ""
    policy: Any = Enforcement(rule, RULE_IDS, Ledger()).policy()
    try:
        policy.validate(args, report)
    except UnknownValueError as error:
        unjudged = error.message
    return Verdict(tuple(messages), unjudged, tuple(urns))
