"""The stack files of the checkout, and the copies that Pulumi may write into."""

import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from tools.versions import ROOT

_SALT = "encryptionsalt"
_NAME = re.compile(r"[A-Za-z0-9_.-]+")


class UnknownStackError(Exception):
    """There is no stack of that name; the message names those that there are."""


def stack_file(stack: str) -> Path:
    """The file of a stack; UnknownStackError where there is none."""
    folder = ROOT / "stacks"
    file = folder / f"Pulumi.{stack}.yaml"
    if _NAME.fullmatch(stack) and file.is_file():
        return file
    known = ", ".join(sorted(path.name.split(".")[1] for path in folder.glob("Pulumi.*.yaml")))
    found = f"STACK={stack} has no stacks/Pulumi.{stack}.yaml" if stack else "STACK is empty"
    raise UnknownStackError(f"{found}; the stacks are {known}")


def holds_salt(file: Path) -> bool:
    """Whether a stack file has values that are encrypted with a passphrase."""
    return _SALT in (yaml.safe_load(file.read_text()) or {})


def _as_it_is(stack: Mapping[str, Any]) -> Mapping[str, Any]:
    return stack


def copy_project(
    directory: Path, file: Path, change: Callable[[Mapping[str, Any]], Mapping[str, Any]] = _as_it_is
) -> Path:
    """Copy Pulumi.yaml and a stack file into `directory`; returns the copied stack file, for `--config-file`.

    Pulumi writes the salt of the state's encryption into the stack file: the copy takes it, and keeps it when it is
    made anew, unless the stack file has one of its own. `change` is applied to what the stack file says.
    """
    copy = directory / "stacks" / file.name
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "Pulumi.yaml", directory)
    earlier = (yaml.safe_load(copy.read_text()) or {}) if copy.exists() else {}
    kept = {_SALT: earlier[_SALT]} if _SALT in earlier else {}
    stack = change(yaml.safe_load(file.read_text()) or {})
    copy.write_text(yaml.safe_dump({**kept, **stack}, sort_keys=False))
    return copy
