"""Reading properties in which any value may still be unknown, as many are during a preview."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import pulumi
from pulumi_policy import proxy

UNKNOWN: Final = object()
# How the protocol spells it, by the type that the value will have.
_SPELLINGS = frozenset(
    {
        proxy.UNKNOWN_BOOLEAN_VALUE,
        proxy.UNKNOWN_NUMBER_VALUE,
        proxy.UNKNOWN_STRING_VALUE,
        proxy.UNKNOWN_ARRAY_VALUE,
        proxy.UNKNOWN_ASSET_VALUE,
        proxy.UNKNOWN_ARCHIVE_VALUE,
        proxy.UNKNOWN_OBJECT_VALUE,
    }
)
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")

Scalar = str | int | float | bool


def mark_unknown(value: Any) -> Any:
    """A value of the protocol with UNKNOWN in each place where one is not known yet."""
    if isinstance(value, dict):
        return {key: mark_unknown(below) for key, below in value.items()}
    if isinstance(value, list):
        return [mark_unknown(below) for below in value]
    return UNKNOWN if isinstance(value, str) and value in _SPELLINGS else value


# Not frozen: a large stack makes a hundred thousand of them, and freezing doubles what one costs.
@dataclass(slots=True)
class Node:
    """A value inside a resource's properties, as `mark_unknown` returns them, with its path. A missing value is None.

    No reader ever raises. Each one that meets an unknown value notes the path in `unseen`, the list that all nodes of
    a resource share, and answers so that a rule neither passes nor fails because of it.
    """

    value: object
    keys: tuple[str | int, ...] = ()
    unseen: list[str] = field(default_factory=list, compare=False, repr=False)

    @property
    def path(self) -> str:
        """The way to the value, such as `spec.containers[0].image`."""
        return "".join(map(_path_element, self.keys)).removeprefix(".")

    def at(self, *keys: str | int) -> "Node":
        """The node below; below a missing or an unknown value lies the same."""
        node = self
        for key in keys:
            node = node._child(key)
        return node

    def is_absent(self) -> bool:
        """True where there is certainly no value (null and missing are one to Kubernetes)."""
        return self._known() is None

    def is_present(self) -> bool:
        """True where there is certainly a value."""
        return self._known() not in (None, UNKNOWN)

    def is_unknown(self) -> bool:
        """True where a value stands that only the update will know."""
        return self._known() is UNKNOWN

    def scalar(self) -> Scalar | None:
        """A text, number or boolean; None for anything else."""
        value = self._known()
        return value if isinstance(value, Scalar) else None

    def text(self) -> str | None:
        """A text; None for anything else."""
        value = self._known()
        return value if isinstance(value, str) else None

    def asset_text(self) -> str | None:
        """The text of an asset that is given as text; None for anything else."""
        value = self._known()
        return value.text if isinstance(value, pulumi.StringAsset) else None

    def number(self) -> int | float | str | None:
        """A number, or text that may spell one such as `25%` or `4Gi`; None for anything else."""
        value = self.scalar()
        return None if isinstance(value, bool) else value

    def integer(self) -> int | None:
        """A whole number; None for anything else. JSON spells some as 3.0."""
        value = self.number()
        try:
            return None if value is None or float(value) != int(float(value)) else int(float(value))
        except (ValueError, OverflowError):
            return None

    def fields(self) -> Iterator[tuple[str, "Node"]]:
        """The entries of an object; none for anything else."""
        value = self._known()
        if isinstance(value, dict):
            for key in value:
                yield str(key), self._child(str(key))

    def elements(self) -> Iterator["Node"]:
        """The elements of a list; none for anything else."""
        value = self._known()
        if isinstance(value, list):
            for index in range(len(value)):
                yield self._child(index)

    def quiet(self) -> "Node":
        """The same node for reading what no verdict depends on: an unknown value is not noted."""
        return Node(self.value, self.keys)

    def _known(self) -> object:
        if self.value is UNKNOWN and (path := self.path) not in self.unseen:
            self.unseen.append(path)
        return self.value

    def _child(self, key: str | int) -> "Node":
        # What is not known has no shape: its own path is the one to report.
        if self.value is UNKNOWN:
            return self
        return Node(_read(self.value, key), (*self.keys, key), self.unseen)


def _read(container: object, key: str | int) -> object:
    if isinstance(container, dict):
        return container.get(key)
    if isinstance(container, list) and isinstance(key, int):
        return container[key] if key < len(container) else None
    return None


def _path_element(key: str | int) -> str:
    if isinstance(key, int):
        return f"[{key}]"
    return f".{key}" if _PLAIN_KEY.fullmatch(key) else f'["{key}"]'
