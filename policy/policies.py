"""Makes the Pulumi SDK's policy objects of rules: findings become messages, exceptions are honoured and reported."""

import traceback
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pulumi_policy import (
    EnforcementLevel,
    Policy,
    PolicyConfigSchema,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    Severity,
    StackValidationArgs,
    StackValidationPolicy,
)
from pulumi_policy.proxy import UNKNOWN_OBJECT_VALUE, UnknownValueError

from policy.exceptions import CONFIG_PROPERTIES, KEY_PREFIX, Ledger, StatedException, stated_exceptions
from policy.resources import from_resource_args, from_stack_args
from policy.rule import Finding, Rule, Unjudged, Violation
from policy.tokens import redact

_MOST_PATHS_NAMED = 5
T = TypeVar("T")


def policies(rules: Sequence[Rule]) -> list[Policy]:
    """A policy for each rule and, after them, the one that reports what was excepted."""
    ledger, rule_ids = Ledger(), frozenset(rule.id for rule in rules)
    return [Enforcement(rule, rule_ids, ledger).policy() for rule in (*rules, exceptions_report(ledger))]


def exceptions_report(ledger: Ledger) -> Rule:
    """The advisory rule that reports what the other rules let pass."""
    return Rule(
        id="policy-exceptions",
        title="What an exception lets pass is reported",
        severity=Severity.LOW,
        why="everyone who reviews a stack sees what is wrong with it and until when that is accepted.",
        remediation=(
            "Mend what is excepted before the exception ends: from the day after, its rule refuses it again.",
            f"Then remove the annotation or tag {KEY_PREFIX}<rule>, or the entry of the configuration.",
        ),
        judge_resource=lambda resource: ledger.take(resource.urn),
        judge_stack=lambda _: ledger.take(""),
        level=EnforcementLevel.ADVISORY,
    )


@dataclass(frozen=True)
class Enforcement:
    """A rule in a pack: the ids of all its rules, and the ledger of what was excepted."""

    rule: Rule
    rule_ids: Collection[str]
    ledger: Ledger

    def policy(self) -> Policy:
        """The SDK's object for this rule: one policy, whichever of the two passes it takes part in."""
        if self.rule.judge_stack is None:
            return ResourceValidationPolicy(validate=self.validate_resource, **self._metadata())
        if self.rule.judge_resource is None:
            return StackValidationPolicy(validate=self.validate_stack, **self._metadata())
        return _TwoPassPolicy(self, self._metadata())

    def validate_resource(self, args: ResourceValidationArgs, report: ReportViolation) -> None:
        """Report every finding on one resource; UnjudgedError afterwards if something could not be seen."""
        if self.rule.judge_resource is None:
            return
        resource = from_resource_args(args)
        unjudged = self._report_all(self.rule.judge_resource, resource, resource.urn, resource.config, report)
        _tell_unjudged(resource.props.unseen, unjudged)

    def validate_stack(self, args: StackValidationArgs, report: ReportViolation) -> None:
        """Report every finding on the stack; UnjudgedError afterwards if something could not be seen."""
        if self.rule.judge_stack is None:
            return
        stack = from_stack_args(args)
        unjudged = self._report_all(self.rule.judge_stack, stack, "", stack.config, report)
        unseen = [f"{one.name}: {path}" for one in stack.resources for path in one.props.unseen]
        _tell_unjudged(unseen, unjudged)

    def _report_all(
        self,
        judge: Callable[[T], Iterable[Finding]],
        subject: T,
        judged: str,
        config: Mapping[str, Any],
        report: ReportViolation,
    ) -> list[Unjudged]:
        """Report the violations, note those that are excepted, and return the rest."""
        unjudged: list[Unjudged] = []
        excused: list[Violation] = []
        # An exception that reached the SDK would end the request, and with it the verdicts of all other rules.
        try:
            for finding in judge(subject):
                if isinstance(finding, Unjudged):
                    unjudged.append(finding)
                    continue
                stated = list(stated_exceptions(self.rule.id, finding.subject, config, self.rule_ids))
                valid = next((one for one in stated if not one.problem), None)
                if valid:
                    excused.append(valid.excuse(finding, self.rule.id))
                else:
                    report(self._message(finding, stated), finding.urn)
        except Exception as error:
            report(self._message(_own_failure(error)), None)
        self.ledger.note(judged, self.rule.id, excused)
        return unjudged

    def _message(self, violation: Violation, exceptions: Iterable[StatedException] = ()) -> str:
        why = violation.why or self.rule.why
        void = "".join(f"\nException by {one.place} does not count: {one.problem}" for one in exceptions)
        return redact(f"{violation.where}: {violation.what}.\nWhy: {why}\nFix: {violation.fix}{void}")

    def _metadata(self) -> dict[str, Any]:
        rule = self.rule
        properties = rule.config.properties if rule.config else {}
        return {
            "name": rule.id,
            "description": rule.title,
            "display_name": rule.title,
            "enforcement_level": rule.level,
            "config_schema": PolicyConfigSchema({**properties, **CONFIG_PROPERTIES}),
            "severity": rule.severity,
            "remediation_steps": "\n".join(f"{number}. {step}" for number, step in enumerate(rule.remediation, 1)),
            "url": rule.url,
        }


class UnjudgedError(UnknownValueError):
    """Raised last, after all findings, to say what was not judged. The SDK turns it into a warning."""

    def __init__(self, paths: Sequence[str], unjudged: Sequence[Unjudged] = ()) -> None:
        super().__init__(UNKNOWN_OBJECT_VALUE, list(paths))
        reasons = [one.what for one in unjudged]
        if paths:
            named = ", ".join(paths[:_MOST_PATHS_NAMED])
            more = f" and {len(paths) - _MOST_PATHS_NAMED} more" if len(paths) > _MOST_PATHS_NAMED else ""
            reasons.insert(0, f"not yet known, so not judged: {named}{more}")
        self.message = redact(f"{'; '.join(reasons)}; everything else was judged")


class _TwoPassPolicy(ResourceValidationPolicy, StackValidationPolicy):
    """One policy that takes part in both passes: the SDK picks policies for a pass by their class.

    Two policies of one name would work in the engine too, but the SDK wants names to be unique.
    """

    def __init__(self, enforcement: Enforcement, metadata: dict[str, Any]) -> None:
        # The constructors of the two base classes exclude each other.
        Policy.__init__(self, **metadata)
        self._enforcement = enforcement

    def validate(self, args: ResourceValidationArgs | StackValidationArgs, report_violation: ReportViolation) -> None:
        if isinstance(args, StackValidationArgs):
            return self._enforcement.validate_stack(args, report_violation)
        return self._enforcement.validate_resource(args, report_violation)

    def has_validation(self) -> bool:
        return True

    def has_remediation(self) -> bool:
        return False


def _own_failure(error: Exception) -> Violation:
    # The text of the exception is left out: it may quote a value.
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return Violation(
        what=f"the rule itself failed ({type(error).__name__} in {frame.name}, line {frame.lineno})",
        where="policy pack",
        why="a rule that could not judge has not passed",
        fix="report it as a defect of the pack; to go on meanwhile, set the rule's enforcementLevel to advisory",
        subject=None,
    )


def _tell_unjudged(paths: Sequence[str], unjudged: Sequence[Unjudged]) -> None:
    if paths or unjudged:
        raise UnjudgedError(paths, unjudged)
