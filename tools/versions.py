"""Versions: read from what a program prints, and pinned by requirements.txt and the go.mod files."""

import re
from pathlib import Path
from typing import TypeAlias

ROOT = Path(__file__).resolve().parent.parent
GO_MODULES = ROOT / "tools" / "go"

Version: TypeAlias = tuple[int, int, int]

_NUMBERS = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")


class PinError(Exception):
    """A pin that the tools rely on is missing from its file."""


def parse_version(text: str) -> Version | None:
    """The first version in `text`: "Kubernetes v1.36.3" gives (1, 36, 3). None when there is none."""
    match = _NUMBERS.search(text)
    if match is None:
        return None
    major, minor, patch = match.groups(default="0")
    return int(major), int(minor), int(patch)


def format_version(version: Version) -> str:
    return ".".join(map(str, version))


def requirement_version(package: str, requirements: Path = ROOT / "requirements.txt") -> str:
    """The version that requirements.txt pins for a PyPI package, without a leading v."""
    return _pin(rf"^{re.escape(package)}==(\S+)", package, requirements)


def module_version(module: str, go_mod: Path) -> str:
    """The version that a go.mod file requires of a Go module, with its leading v."""
    return _pin(rf"^(?:require)?\s*{re.escape(module)} (v\S+)", module, go_mod)


def required_go(go_mod: Path) -> Version:
    """The oldest Go that a go.mod file accepts."""
    version = parse_version(_pin(r"^go (\S+)", "go", go_mod))
    if version is None:
        raise PinError(f"{go_mod}: the go line has no version")
    return version


def _pin(pattern: str, name: str, file: Path) -> str:
    match = re.search(pattern, file.read_text(encoding="utf-8"), re.MULTILINE)
    if match is None:
        raise PinError(f"{file}: no pinned version of {name}")
    return match.group(1)
