"""Exceptions: an object need not keep a rule, for a reason and until a date.

A Kubernetes object says so by an annotation, an AWS resource by a tag: `policy.neuron-serving.dev/except-<rule>` with
the value `<YYYY-MM-DD> <reason>`, good through that day (UTC). For what can carry neither, and for findings on the
stack as a whole, the rule's configuration lists them under `exceptions`. None may end later than `longestExceptionDays`
of that configuration from today: nobody remembers the others.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from policy.config import number
from policy.manifests import Manifest, Subject
from policy.rule import Violation
from policy.values import Node

KEY_PREFIX = "policy.neuron-serving.dev/except-"
CONFIG_KEY = "exceptions"
LONGEST_KEY = "longestExceptionDays"
# A year: whoever answers for an exception looks at it that often. With the leap day, so that `next year` always counts.
DEFAULT_LONGEST_DAYS = 366
# What a configured exception names where the finding is on the stack as a whole.
WHOLE_STACK = "stack"
# What is missing or misspelt is said beside the violation, so the schema lets it through.
CONFIG_PROPERTIES: dict[str, dict[str, Any]] = {
    CONFIG_KEY: {
        "type": "array",
        "items": {"type": "object", "properties": {key: {"type": "string"} for key in ("resource", "until", "reason")}},
        "default": [],
    },
    LONGEST_KEY: {"type": "integer", "minimum": 1, "default": DEFAULT_LONGEST_DAYS},
}
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


@dataclass(frozen=True)
class StatedException:
    """An exception and the place where it is stated. `problem` says why it does not count; empty where it does."""

    place: str
    until: str
    reason: str
    problem: str = ""

    def excuse(self, violation: Violation, rule_id: str) -> Violation:
        """The finding that tells of the exception instead of the violation."""
        return replace(
            violation,
            what=f"{rule_id} is excepted until {self.until} by {self.place}: {violation.what}",
            why=self.reason,
            fix=f"before that day {violation.fix}; then remove the exception",
        )


class Ledger:
    """What was excepted and is still to be reported, by the URN of the resource judged; "" is the whole stack.

    The SDK asks one policy after the other about a resource. Each rule notes here what it let pass, and the policy that
    reports exceptions, the last one, takes it.
    """

    def __init__(self) -> None:
        self._noted: dict[str, dict[str, Sequence[Violation]]] = {}

    def note(self, judged: str, rule_id: str, excused: Sequence[Violation]) -> None:
        """Keep what a rule let pass, in place of what it let pass when it last judged the same."""
        if excused:
            self._noted.setdefault(judged, {})[rule_id] = excused

    def take(self, judged: str) -> Iterator[Violation]:
        """What the rules let pass there since it was last taken."""
        for excused in self._noted.pop(judged, {}).values():
            yield from excused


def today() -> date:
    """The day by which exceptions end."""
    return datetime.now(UTC).date()


def stated_exceptions(
    rule_id: str, subject: Subject | None, config: Mapping[str, Any], rule_ids: Collection[str]
) -> Iterator[StatedException]:
    """The exceptions from a rule that are stated for an object, and those for rules that the pack does not have."""
    longest_days = int(number(config, LONGEST_KEY, DEFAULT_LONGEST_DAYS))
    for place, key, value in _marks(subject):
        named = key.removeprefix(KEY_PREFIX)
        if named == rule_id:
            until, reason = [*(value.text() or "").split(maxsplit=1), "", ""][:2]
            yield _checked(f"{place} {key}", until, reason, longest_days)
        elif named not in rule_ids:
            yield StatedException(f"{place} {key}", "", "", f"the pack has no rule {named}")
    for place, entry in _configured(rule_id, subject, config):
        yield _checked(place, entry.at("until").text() or "", entry.at("reason").text() or "", longest_days)


def _marks(subject: Subject | None) -> Iterator[tuple[str, str, Node]]:
    """Annotations or tags that state an exception: what they are, key and value."""
    if subject is None:
        return
    if isinstance(subject, Manifest):
        place, entries = "annotation", subject.node.at("metadata", "annotations").quiet().fields()
    else:
        place, entries = "tag", _tags(subject.props.at("tags").quiet())
    for key, value in entries:
        if key.startswith(KEY_PREFIX):
            yield place, key, value


def _tags(tags: Node) -> Iterator[tuple[str, Node]]:
    """Tags as an object, or as the list of keys and values that aws-native has."""
    yield from tags.fields()
    for tag in tags.elements():
        yield tag.at("key").text() or "", tag.at("value")


def _configured(rule_id: str, subject: Subject | None, config: Mapping[str, Any]) -> Iterator[tuple[str, Node]]:
    """Entries of the configuration for that object, each with its place."""
    entries = config.get(CONFIG_KEY)
    for index, entry in enumerate(entries if isinstance(entries, list | tuple) else ()):
        if Node(entry).at("resource").text() in _names(subject):
            yield f"{CONFIG_KEY}[{index}] in the configuration of {rule_id}", Node(entry)


def _names(subject: Subject | None) -> tuple[str, ...]:
    """How a configured exception may name an object: URN, name in the program, or kind, namespace and name."""
    if subject is None:
        return (WHOLE_STACK,)
    resource = subject.resource if isinstance(subject, Manifest) else subject
    return resource.urn, resource.name, str(subject)


def _checked(place: str, until: str, reason: str, longest_days: int) -> StatedException:
    """The exception with what is wrong about it. Neither value is quoted there: nobody has said what it is."""
    stated = StatedException(place, until, reason.strip())
    day = _day(until)
    if day is None:
        return replace(stated, problem="it does not say until when, as YYYY-MM-DD")
    if not stated.reason:
        return replace(stated, problem="it gives no reason")
    if day < today():
        return replace(stated, problem=f"it ended on {day}")
    if (day - today()).days > longest_days:
        latest = today() + timedelta(days=longest_days)
        return replace(
            stated, problem=f"it ends on {day}, after {latest}, the latest day allowed ({LONGEST_KEY}: {longest_days})"
        )
    return stated


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if _DATE.fullmatch(text) else None
    except ValueError:
        return None
