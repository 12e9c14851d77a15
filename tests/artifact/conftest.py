"""A pod with an empty cache."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.artifact.sandbox import LINES, Sandbox


@pytest.fixture(scope="session")
def bytecode(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment in which Python compiles the programs once, not once a start."""
    return {"PYTHONPYCACHEPREFIX": str(tmp_path_factory.mktemp("bytecode"))}


@pytest.fixture
def pod(tmp_path: Path, bytecode: dict[str, str]) -> Sandbox:
    """A pod of the NxDI line."""
    (tmp_path / "mount").mkdir()
    return Sandbox(tmp_path / "pod", tmp_path / "mount", environment=bytecode)


@pytest.fixture(params=LINES)
def pod_of_each_line(pod: Sandbox, request: pytest.FixtureRequest) -> Sandbox:
    """A pod of every image line."""
    return replace(pod, line=request.param)
