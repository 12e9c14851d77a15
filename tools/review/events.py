"""What the engine says of a preview: its event log, parsed.

The log (`--event-log`, one JSON object a line, apitype.EngineEvent) has what `--json` leaves out: the policy events.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Properties: TypeAlias = Mapping[str, Any]

# Operations on what exists outside of the stack, or on nothing.
UNCHANGED = frozenset({"same", "read", "refresh"})
_NOT_RUN = "can't run policy"
_SHOWN_SEVERITIES = frozenset({"info", "info#err", "warning", "error"})


@dataclass(frozen=True)
class State:
    """A resource before or after the change. Of `inputs` and `outputs`, secrets are blinded by the engine."""

    inputs: Properties
    outputs: Properties
    retained: bool = False


@dataclass(frozen=True)
class Step:
    """What the update would do to one resource; `old` is None for a new one, `new` for one that goes.

    `replace_reasons` are the properties that force a replacement. `differences` maps property paths to kinds such as
    update or add-replace; it is empty where the provider gives none.
    """

    operation: str
    urn: str
    old: State | None
    new: State | None
    replace_reasons: tuple[str, ...] = ()
    differences: Mapping[str, str] = field(default_factory=dict)

    @property
    def type(self) -> str:
        """The resource's own type, as in aws:eks/nodeGroup:NodeGroup."""
        return type_of(self.urn)

    @property
    def name(self) -> str:
        """The resource's name in the program."""
        return name_of(self.urn)

    @property
    def changes(self) -> bool:
        """Whether the update would do anything."""
        return self.operation not in UNCHANGED


@dataclass(frozen=True)
class Diagnostic:
    """A message of the program, a provider or the engine: info, warning or error."""

    severity: str
    message: str
    urn: str = ""


@dataclass(frozen=True)
class PolicyResult:
    """What a rule reported: at level `mandatory` it stops an update."""

    rule: str
    level: str
    message: str
    urn: str = ""

    @property
    def is_unjudged(self) -> bool:
        """Whether the rule reports what it could not see, and no violation."""
        return self.message.startswith(_NOT_RUN)


@dataclass(frozen=True)
class Preview:
    """All of it. `counts` are the engine's own, by operation; empty where it ended early. `rules` are those asked."""

    config: Mapping[str, str]
    steps: tuple[Step, ...]
    diagnostics: tuple[Diagnostic, ...]
    policy_results: tuple[PolicyResult, ...]
    rules: frozenset[str]
    counts: Mapping[str, int]


def parse(lines: Iterable[str]) -> Preview:
    """The preview that an event log tells of. A line that was cut off by a crash is passed over."""
    events = list(_events(lines))
    config: dict[str, str] = {}
    counts: dict[str, int] = {}
    for event in events:
        config |= event.get("preludeEvent", {}).get("config", {})
        counts |= event.get("summaryEvent", {}).get("resourceChanges", {})
    return Preview(
        config=config,
        steps=tuple(_steps(events)),
        diagnostics=tuple(dict.fromkeys(_diagnostics(events))),
        policy_results=tuple(dict.fromkeys(_policy_results(events))),
        rules=frozenset(_rules(events)),
        counts=counts,
    )


def type_of(urn: str) -> str:
    """The type in a URN, without those of its parents."""
    return urn.split("::")[2].rpartition("$")[2] if urn.count("::") > 2 else ""


def name_of(urn: str) -> str:
    """The name in a URN."""
    return urn.split("::", 3)[3] if urn.count("::") > 2 else urn


def parent_types(urn: str) -> str:
    """The types of a resource's parents, as the URN has them: two resources of one component share these."""
    return urn.split("::")[2].rpartition("$")[0] if urn.count("::") > 2 else ""


def _events(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            event = json.loads(line)
        except json.JSONDecodeError:
            continue
        if isinstance(event, dict):
            yield event


def _steps(events: Iterable[Mapping[str, Any]]) -> Iterator[Step]:
    """The logical steps: a replacement is one, not its creation and its deletion."""
    for event in events:
        metadata = event.get("resourcePreEvent", {}).get("metadata", {})
        if not metadata.get("logical") or metadata["op"] == "refresh" or _is_default_provider(metadata["urn"]):
            continue
        yield Step(
            operation=metadata["op"],
            urn=metadata["urn"],
            old=_state(metadata.get("old")),
            new=_state(metadata.get("new")),
            replace_reasons=tuple(metadata.get("keys") or ()),
            differences={path: diff["diffKind"] for path, diff in (metadata.get("detailedDiff") or {}).items()},
        )


def _is_default_provider(urn: str) -> bool:
    """The engine makes these by itself, and does not count them."""
    return type_of(urn).startswith("pulumi:providers:") and name_of(urn).startswith("default")


def _state(state: Mapping[str, Any] | None) -> State | None:
    if state is None:
        return None
    return State(state.get("inputs") or {}, state.get("outputs") or {}, state.get("retainOnDelete", False))


def _diagnostics(events: Iterable[Mapping[str, Any]]) -> Iterator[Diagnostic]:
    for event in events:
        diagnostic = event.get("diagnosticEvent", {})
        if diagnostic.get("severity") in _SHOWN_SEVERITIES and not diagnostic.get("ephemeral"):
            yield Diagnostic(diagnostic["severity"], diagnostic["message"].strip(), diagnostic.get("urn", ""))


def _policy_results(events: Iterable[Mapping[str, Any]]) -> Iterator[PolicyResult]:
    for event in events:
        result = event.get("policyEvent")
        if result is not None:
            message = result["message"].strip()
            yield PolicyResult(result["policyName"], result["enforcementLevel"], message, result.get("resourceUrn", ""))


def _rules(events: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for event in events:
        for kind in ("policyAnalyzeSummaryEvent", "policyAnalyzeStackSummaryEvent"):
            summary = event.get(kind, {})
            yield from summary.get("passed") or ()
            yield from summary.get("failed") or ()
