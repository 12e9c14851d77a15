"""A pod with an empty cache."""

from pathlib import Path

import pytest

from tests.artifact.sandbox import LINES, Sandbox


@pytest.fixture
def pod(tmp_path: Path) -> Sandbox:
    """A pod of the NxDI line."""
    (tmp_path / "mount").mkdir()
    return Sandbox(tmp_path / "pod", tmp_path / "mount")


@pytest.fixture(params=LINES)
def pod_of_each_line(tmp_path: Path, request: pytest.FixtureRequest) -> Sandbox:
    """A pod of every image line."""
    (tmp_path / "mount").mkdir()
    return Sandbox(tmp_path / "pod", tmp_path / "mount", line=request.param)
