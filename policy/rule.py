"""What a rule is, and how the Pulumi SDK's policy object is made of it."""

import traceback
from collections.abc import Callable, Iterable, Sequence
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

from policy.resources import Resource, Stack, from_resource_args, from_stack_args
from policy.tokens import redact

_DOCS = "docs/policies"
_MOST_PATHS_NAMED = 5
T = TypeVar("T")


@dataclass(frozen=True)
class Violation:
    """One finding: what is wrong, at which place of which object, and the smallest change that mends it.

    `why` stands in for the rule's where a finding has a reason of its own. `urn` names the resource to a stack's pass.
    """

    what: str
    where: str
    fix: str
    why: str = ""
    urn: str = ""


@dataclass(frozen=True)
class Unjudged:
    """What a judge could not judge for another reason than an unknown property, and what would let it."""

    what: str


Finding = Violation | Unjudged


@dataclass(frozen=True)
class Rule:
    """A rule of the pack; its id is the policy's name.

    `judge_resource` sees the inputs of one resource before it is created. `judge_stack` sees the outputs of all of
    them, with the defaults that the API server has filled in. A rule may need both; each judges all that it can see.
    """

    id: str
    title: str
    severity: Severity
    why: str
    remediation: tuple[str, ...]
    judge_resource: Callable[[Resource], Iterable[Finding]] | None = None
    judge_stack: Callable[[Stack], Iterable[Finding]] | None = None
    level: EnforcementLevel = EnforcementLevel.MANDATORY
    config: PolicyConfigSchema | None = None

    @property
    def url(self) -> str:
        """The rule's page, relative to the root of the project."""
        return f"{_DOCS}/{self.id}.md"

    def policy(self) -> Policy:
        """The SDK's object for this rule: one policy, whichever of the two passes it takes part in."""
        if self.judge_stack is None:
            return ResourceValidationPolicy(validate=self.validate_resource, **self._metadata())
        if self.judge_resource is None:
            return StackValidationPolicy(validate=self.validate_stack, **self._metadata())
        return _TwoPassPolicy(self, self._metadata())

    def validate_resource(self, args: ResourceValidationArgs, report: ReportViolation) -> None:
        """Report every finding on one resource; UnjudgedError afterwards if something could not be seen."""
        if self.judge_resource is None:
            return
        resource = from_resource_args(args)
        unjudged = self._report_all(self.judge_resource, resource, report)
        _tell_unjudged(resource.props.unseen, unjudged)

    def validate_stack(self, args: StackValidationArgs, report: ReportViolation) -> None:
        """Report every finding on the stack; UnjudgedError afterwards if something could not be seen."""
        if self.judge_stack is None:
            return
        stack = from_stack_args(args)
        unjudged = self._report_all(self.judge_stack, stack, report)
        unseen = [f"{one.name}: {path}" for one in stack.resources for path in one.props.unseen]
        _tell_unjudged(unseen, unjudged)

    def _report_all(
        self, judge: Callable[[T], Iterable[Finding]], subject: T, report: ReportViolation
    ) -> list[Unjudged]:
        """Report the violations, and return the rest."""
        unjudged: list[Unjudged] = []
        # An exception that reached the SDK would end the request, and with it the verdicts of all other rules.
        try:
            for finding in judge(subject):
                if isinstance(finding, Unjudged):
                    unjudged.append(finding)
                else:
                    report(self._message(finding), finding.urn or None)
        except Exception as error:
            report(self._message(_own_failure(error)), None)
        return unjudged

    def _message(self, violation: Violation) -> str:
        why = violation.why or self.why
        return redact(f"{violation.where}: {violation.what}.\nWhy: {why}\nFix: {violation.fix}")

    def _metadata(self) -> dict[str, Any]:
        return {
            "name": self.id,
            "description": self.title,
            "display_name": self.title,
            "enforcement_level": self.level,
            "config_schema": self.config,
            "severity": self.severity,
            "remediation_steps": "\n".join(f"{number}. {step}" for number, step in enumerate(self.remediation, 1)),
            "url": self.url,
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

    def __init__(self, rule: Rule, metadata: dict[str, Any]) -> None:
        # The constructors of the two base classes exclude each other.
        Policy.__init__(self, **metadata)
        self._rule = rule

    def validate(self, args: ResourceValidationArgs | StackValidationArgs, report_violation: ReportViolation) -> None:
        if isinstance(args, StackValidationArgs):
            return self._rule.validate_stack(args, report_violation)
        return self._rule.validate_resource(args, report_violation)

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
    )


def _tell_unjudged(paths: Sequence[str], unjudged: Sequence[Unjudged]) -> None:
    if paths or unjudged:
        raise UnjudgedError(paths, unjudged)
