"""What a rule is, and what it finds."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pulumi_policy import EnforcementLevel, PolicyConfigSchema, Severity

from policy.manifests import Subject
from policy.resources import Resource, Stack

_DOCS = "docs/policies"


@dataclass(frozen=True)
class Violation:
    """One finding: what is wrong, at which place of which object, and the smallest change that mends it.

    `subject` is that object; None where it is the stack as a whole. `why` stands in for the rule's where a finding has
    a reason of its own.
    """

    what: str
    where: str
    fix: str
    subject: Subject | None
    why: str = ""

    @property
    def urn(self) -> str | None:
        """The URN of the resource that it is in; None for the stack as a whole."""
        return self.subject.urn if self.subject else None


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
