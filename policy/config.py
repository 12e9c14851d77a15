"""Reading configuration: the stack's, and a rule's, which comes unchecked where no engine stands before the pack."""

import os
from collections.abc import Mapping
from typing import Any

from pulumi.runtime import get_config_env


def stack_config() -> dict[str, str]:
    """The stack's own configuration: the keys of its project without the project's name, values as text.

    Every Python language host, the official one too, starts a pack with the stack's configuration in its environment.
    None is there where the engine names no stack, as in `pulumi policy analyze` (3.229).
    """
    prefix = f"{os.environ.get('PULUMI_PROJECT', '')}:"
    return {key.removeprefix(prefix): value for key, value in get_config_env().items() if key.startswith(prefix)}


def number(config: Mapping[str, Any], key: str, default: float) -> float:
    """A number; the default where there is none."""
    value = config.get(key)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else default


def texts(config: Mapping[str, Any], key: str) -> frozenset[str]:
    """The texts of a list; none where there is no list."""
    value = config.get(key)
    return frozenset(one for one in value if isinstance(one, str)) if isinstance(value, list | tuple) else frozenset()
