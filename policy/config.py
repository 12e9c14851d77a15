"""Reading a rule's configuration, which reaches the pack unchecked where no engine stands before it."""

from collections.abc import Mapping
from typing import Any


def number(config: Mapping[str, Any], key: str, default: float) -> float:
    """A number; the default where there is none."""
    value = config.get(key)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else default


def texts(config: Mapping[str, Any], key: str) -> frozenset[str]:
    """The texts of a list; none where there is no list."""
    value = config.get(key)
    return frozenset(one for one in value if isinstance(one, str)) if isinstance(value, list | tuple) else frozenset()
