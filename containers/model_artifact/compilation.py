"""Compiles the model: runs vLLM once, as a child, with the server's own arguments."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

from containers.model_artifact.description import Description
from containers.model_artifact.errors import ArtifactError
from containers.model_artifact.local import Local
from containers.model_artifact.manifest import File
from containers.model_artifact.report import Report

# The packages whose versions decide what the compiled graphs are; the image has some of them.
_TOOLS = (
    "vllm",
    "vllm-neuron",
    "neuronx-cc",
    "neuronx-distributed",
    "neuronx-distributed-inference",
    "torch",
    "torch-neuronx",
    "libneuronxla",
    "nki",
)

# By the variable that points the server at them: what must be there when the compiler is done.
_RESULTS: Mapping[str, tuple[str, ...]] = {
    "NEURON_COMPILED_ARTIFACTS": ("neuron_config.json", "model.pt"),
    "VLLM_CACHE_ROOT": ("neuron/compile_cache/*",),
}

# The compiler's own cache, where a module is complete by itself once it has both. It caches failures as well.
_MODULES = "neuronxcc-*/MODULE_*"
_MODULE_FILES = ("model.neff", "model.done")

_PROGRAMS = Path(__file__).parents[2]


def compile_model(
    description: Description, arguments: Sequence[str], local: Local, report: Report
) -> Mapping[str, File]:
    """The compiled graphs in the local part for them; modules that an earlier attempt completed are kept."""
    part = local.artifacts
    complete = part.files()
    if complete is not None:
        report.say("compile: complete already")
        return complete
    check_model_argument(arguments, local)
    part.reopen()
    _keep_complete_modules(part.directory)
    with report.stage("compile"):
        _run_vllm(arguments, _environment(description.artifacts_variable, part.directory), local.directory)
    _check_results(description, part.directory)
    with report.stage("hash artifacts") as stage:
        files = part.measure(stage.add)
    part.finish(files)
    return files


def check_model_argument(arguments: Sequence[str], local: Local) -> None:
    """ArtifactError unless the arguments serve the local copy: by its id, vLLM would download the model again."""
    wanted = f"--model={local.model.directory}"
    if wanted not in arguments:
        raise ArtifactError(f"the server's arguments after -- have no {wanted}")


def tools() -> dict[str, str]:
    """Versions of the packages that decide what is compiled."""
    versions = {}
    for name in _TOOLS:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _environment(artifacts_variable: str, artifacts: Path) -> dict[str, str]:
    """The container's environment, but for where results go; the child needs neither the network nor the token."""
    environment = {name: value for name, value in os.environ.items() if not name.endswith(("_TOKEN", "_TOKEN_PATH"))}
    # The server's own guard against compiling.
    environment.pop("VLLM_NEURON_DISABLE_WARMUP_COMPILE", None)
    return {
        **environment,
        artifacts_variable: str(artifacts),
        "NEURON_COMPILE_CACHE_URL": str(artifacts),
        "HF_HUB_OFFLINE": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, (str(_PROGRAMS), environment.get("PYTHONPATH")))),
    }


def _run_vllm(arguments: Sequence[str], environment: Mapping[str, str], directory: Path) -> None:
    """The compiler leaves files in its working directory, which the programs' own directory does not allow."""
    command = [sys.executable, "-m", "containers.model_artifact.build_engine", *arguments]
    child = subprocess.Popen(command, env=environment, cwd=directory)
    try:
        code = child.wait()
    finally:
        child.kill()
        child.wait()
    if code == -signal.SIGKILL:
        raise ArtifactError("compiling was killed; if by the memory limit, raise that or take a larger instance type")
    if code != 0:
        raise ArtifactError(f"compiling failed with exit code {code}; the log above says why")


def _keep_complete_modules(directory: Path) -> None:
    """Delete all but complete modules: vLLM would load a half-written result, the compiler repeat a cached failure.

    What a rank's weights lack, nothing tells before they are loaded; so they are sharded again.
    """
    keep = {module for module in directory.glob(_MODULES) if _is_complete(module)}
    ancestors = {path.parent for path in keep}
    for path in [*directory.iterdir(), *directory.glob(_MODULES)]:
        if path in keep or path in ancestors or not path.exists():
            continue
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _check_results(description: Description, directory: Path) -> None:
    wanted = [*_RESULTS[description.artifacts_variable], *description.rank_files]
    missing = [pattern for pattern in wanted if not any(directory.glob(pattern))]
    incomplete = [module.name for module in directory.glob(_MODULES) if not _is_complete(module)]
    if missing or incomplete:
        raise ArtifactError(f"compiling ended without error, but {[*missing, *incomplete][0]} is not complete")


def _is_complete(module: Path) -> bool:
    return all((module / name).exists() for name in _MODULE_FILES)
