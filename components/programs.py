"""The programs that run in the pods, as the content of a ConfigMap: publish and load of containers/model_artifact."""

from pathlib import Path

import pulumi_kubernetes.core.v1 as core

from neuron.artifact import Artifact

PROGRAMS_PATH = "/programs"
ARTIFACT_FILE = "artifact.json"

_ROOT = Path(__file__).parent.parent
_PACKAGE = "containers/model_artifact"
# The one module of ours that the programs share with the preview: both name differences in the same words.
_SHARED = "neuron/differences.py"


def config_map_data(artifact: Artifact) -> dict[str, str]:
    """The programs' sources and the description of the artifact, by ConfigMap key."""
    return {_key(path): (_ROOT / path).read_text() for path in _paths()} | {ARTIFACT_FILE: artifact.description()}


def volume_items() -> list[core.KeyToPathArgsDict]:
    """Where each key of the ConfigMap lies below PROGRAMS_PATH: keys cannot hold the slashes of a package."""
    items: list[core.KeyToPathArgsDict] = [{"key": _key(path), "path": path} for path in _paths()]
    return [*items, {"key": ARTIFACT_FILE, "path": ARTIFACT_FILE}]


def command(program: str) -> list[str]:
    """The command of one of the programs, with PROGRAMS_PATH as working directory."""
    return ["python3", "-m", f"{_PACKAGE.replace('/', '.')}.{program}"]


def _paths() -> list[str]:
    return [*sorted(f"{_PACKAGE}/{file.name}" for file in (_ROOT / _PACKAGE).glob("*.py")), _SHARED]


def _key(path: str) -> str:
    return path.replace("/", ".")
