"""What changes about a resource, one line a property."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from policy.values import UNKNOWN
from tools.review.events import State, Step
from tools.review.masking import masked

_PLAIN_KEY = re.compile(r"[A-Za-z_][\w-]*")
_LAST_INDEX = re.compile(r"\[\d+\]$")
_LATER = "(known after the update)"
_LONGEST_VALUE = 120


@dataclass(frozen=True)
class PropertyChange:
    """A property by its path, its text before and after; None where it is missing."""

    path: str
    old: str | None
    new: str | None
    forces_replacement: bool = False


def property_changes(step: Step) -> tuple[PropertyChange, ...]:
    """All properties that differ, those that force a replacement first; all properties of what is new or goes."""
    old, new = _leaves(step.old), _leaves(step.new)
    found = {
        path: PropertyChange(path, *_cut(old.get(path), new.get(path)), _forces(step, path))
        for path in dict.fromkeys([*old, *new])
        if old.get(path) != new.get(path)
    }
    return tuple(sorted([*found.values(), *_unseen(step, found)], key=lambda one: not one.forces_replacement))


def replacement_reasons(step: Step) -> tuple[PropertyChange, ...]:
    """The properties that force a replacement, a list as one; without values where only the provider knows them."""
    forcing: dict[str, list[PropertyChange]] = {}
    for change in property_changes(step):
        if change.forces_replacement:
            forcing.setdefault(_LAST_INDEX.sub("", change.path), []).append(change)
    found = [changes[0] if len(changes) == 1 else _joined(path, changes) for path, changes in forcing.items()]
    named = [_normal(reason) for reason in step.replace_reasons]
    bare = [
        PropertyChange(path, None, None, True)
        for path in named
        if not any(_within(one.path, path) for changes in forcing.values() for one in changes)
    ]
    return (*found, *bare)


def _joined(path: str, changes: list[PropertyChange]) -> PropertyChange:
    old = ", ".join(one.old for one in changes if one.old is not None)
    new = ", ".join(one.new for one in changes if one.new is not None)
    return PropertyChange(path, old or None, new or None, True)


def _unseen(step: Step, found: dict[str, PropertyChange]) -> Iterator[PropertyChange]:
    """Differences that the provider sees and inputs do not show: of a secret, or against what it found in the cloud."""
    if step.old is None or step.new is None:
        return
    outputs, inputs = _flat(masked(step.old.outputs)), _flat(masked(step.new.inputs))
    for path in map(_normal, step.differences):
        if not any(_within(known, path) for known in found):
            old, new = outputs.get(path), inputs.get(path)
            yield PropertyChange(path, *_cut(old or "(other)", new or "(other)"), _forces(step, path))


def _forces(step: Step, path: str) -> bool:
    reasons = [_normal(reason) for reason in step.replace_reasons]
    reasons += [_normal(changed) for changed, kind in step.differences.items() if kind.endswith("-replace")]
    return any(_within(path, reason) for reason in reasons)


def _normal(path: str) -> str:
    return path.removeprefix(".")


def _within(path: str, other: str) -> bool:
    """Whether one of two paths lies at or below the other."""
    shorter, longer = sorted((path, other), key=len)
    return longer.startswith(shorter) and longer[len(shorter) : len(shorter) + 1] in ("", ".", "[")


def _leaves(state: State | None) -> dict[str, str]:
    return {} if state is None else _flat(masked(state.inputs))


def _flat(value: Any, path: str = "") -> dict[str, str]:
    """Text by path of all that is no object and no list, or an empty one."""
    if isinstance(value, dict) and value:
        return {leaf: text for key in value for leaf, text in _flat(value[key], _below(path, key)).items()}
    if isinstance(value, list) and value:
        return {leaf: text for index, one in enumerate(value) for leaf, text in _flat(one, f"{path}[{index}]").items()}
    return {path: _text(value)} if path else {}


def _below(path: str, key: str) -> str:
    step = key if _PLAIN_KEY.fullmatch(key) else f'["{key}"]'
    return f"{path}{step}" if step.startswith("[") or not path else f"{path}.{step}"


def _text(value: Any) -> str:
    if value is UNKNOWN:
        return _LATER
    return " ".join(value.split()) if isinstance(value, str) else json.dumps(value)


def _cut(old: str | None, new: str | None) -> tuple[str | None, str | None]:
    """Two texts, those that are long from shortly before the first difference on."""
    alike = takewhile(lambda pair: pair[0] == pair[1], zip(old or "", new or "", strict=False))
    same = sum(1 for _ in alike)
    return _window(old, same), _window(new, same)


def _window(text: str | None, same: int) -> str | None:
    if text is None or len(text) <= _LONGEST_VALUE:
        return text
    start = max(min(same - _LONGEST_VALUE // 3, len(text) - _LONGEST_VALUE), 0)
    end = start + _LONGEST_VALUE
    return f"{'...' if start else ''}{text[start:end]}{'...' if end < len(text) else ''} ({len(text)} characters)"
