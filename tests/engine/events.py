"""What the engine did, from the events that the CLI writes with --event-log."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_BEGINS, _ENDS = "resourcePreEvent", "resOutputsEvent"


@dataclass(frozen=True)
class Step:
    """What was done, or would be, to a resource; components are not `custom`.

    `began` and `ended` are places in the order of all events.
    """

    urn: str
    type: str
    operation: str
    is_custom: bool
    is_retained: bool
    began: int
    ended: int

    @property
    def name(self) -> str:
        """The resource's name in the program."""
        return self.urn.rpartition("::")[2]


def steps(file: Path) -> list[Step]:
    """All steps of a run; of one that did not end, `ended` is where it began."""
    found: dict[tuple[str, str], tuple[int, int, dict[str, Any]]] = {}
    for place, kind, metadata in _events(file):
        key = (metadata["urn"], metadata["op"])
        began = found[key][0] if key in found else place
        found[key] = (began, place, metadata)
        assert kind in (_BEGINS, _ENDS)
    return [
        Step(urn, metadata["type"], operation, _is_custom(metadata), _is_retained(metadata), began, ended)
        for (urn, operation), (began, ended, metadata) in found.items()
    ]


def deletions(file: Path) -> list[Step]:
    """The deletions of resources that a provider has, the components' left out."""
    return [one for one in steps(file) if one.operation == "delete" and one.is_custom]


def _events(file: Path) -> Iterator[tuple[int, str, dict[str, Any]]]:
    for place, line in enumerate(file.read_text().splitlines()):
        event = json.loads(line)
        for kind in (_BEGINS, _ENDS):
            if kind in event:
                yield place, kind, event[kind]["metadata"]


def _is_custom(metadata: dict[str, Any]) -> bool:
    return bool((metadata.get("old") or metadata.get("new") or {}).get("custom"))


def _is_retained(metadata: dict[str, Any]) -> bool:
    return bool((metadata.get("old") or {}).get("retainOnDelete"))
