"""What the layers and the policy pack cost: ratios of one run, with the real engine on a control plane of its own.

`make bench` prints the table; figures in documents name it as their source.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import yaml

from tools import toolchain
from tools.control_plane.plane import ControlPlane
from tools.control_plane.stack_file import read_node_groups
from tools.environment import pulumi_environment
from tools.errors import report_line
from tools.versions import ROOT

_ROUNDS = 3
_RESOURCES = 500
_STACK = "bench"
_PROGRAM = ("Pulumi.yaml", "__main__.py", "components", "neuron", "containers")
# Registers what a state file lists, and nothing else: what the engine and the provider cost without the layers.
_BARE = """
import json, pathlib, pulumi, pulumi_kubernetes
provider = pulumi_kubernetes.Provider("bare", kubeconfig={kubeconfig!r})
for index, (kind, inputs) in enumerate(json.loads(pathlib.Path("resources.json").read_text())):
    pulumi.CustomResource(kind, f"r{{index}}", inputs, pulumi.ResourceOptions(provider=provider))
"""


@dataclass(frozen=True)
class Project:
    """A Pulumi project in a folder, with the environment of its CLI."""

    directory: Path
    environment: dict[str, str]

    def pulumi(self, *arguments: str) -> str:
        """Run the CLI; CalledProcessError, with its output, if it fails."""
        return subprocess.run(
            ["pulumi", *arguments, "--non-interactive"],
            cwd=self.directory,
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    def seconds(self, *arguments: str) -> float:
        """The median time of a few runs of a command."""
        return statistics.median(_timed(lambda: self.pulumi(*arguments)) for _ in range(_ROUNDS))


def main() -> int:
    """Measure and print the table."""
    folder = Path(tempfile.mkdtemp(prefix="neuron-serving-bench-"))
    plane = ControlPlane(folder / "control-plane", read_node_groups(ROOT / "stacks" / "Pulumi.local.yaml"))
    try:
        plane.start(report_line)
        for line in _measure(folder, plane):
            print(line, flush=True)
    except subprocess.CalledProcessError as error:
        print(f"error: {' '.join(error.cmd)}\n{error.stdout}{error.stderr}", file=sys.stderr)
        return 1
    finally:
        plane.stop(report_line)
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def _measure(folder: Path, plane: ControlPlane) -> list[str]:
    report_line("bench: deploying the stack and a bare program with the same resources")
    ours = _ours(folder / "ours", plane)
    bare = _bare(folder / "bare", plane, _kubernetes_resources(ours))
    report_line(f"bench: warm updates, {_ROUNDS} rounds each")
    up = ["up", "--stack", _STACK, "--yes", "--skip-preview"]
    rows = [("warm `pulumi up` of local", ours.seconds(*up), "a bare program", bare.seconds(*up))]
    report_line(f"bench: previews of {_RESOURCES} resources, {_ROUNDS} rounds each")
    config_map: list[object] = ["kubernetes:core/v1:ConfigMap", {"data": {"key": "value"}}]
    many = _bare(folder / "many", plane, [config_map] * _RESOURCES, deploy=False)
    preview = ["preview", "--stack", _STACK]
    with_pack = many.seconds(*preview, "--policy-pack", str(ROOT / "policy"))
    rows.append((f"preview of {_RESOURCES} resources with the pack", with_pack, "without", many.seconds(*preview)))
    return [
        f"{what}: {mine:.1f} s; {other}: {theirs:.1f} s; ratio {mine / theirs:.2f}"
        for what, mine, other, theirs in rows
    ]


def _ours(directory: Path, plane: ControlPlane) -> Project:
    directory.mkdir()
    for name in _PROGRAM:
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, directory / name)
    stack = yaml.safe_load((ROOT / "stacks" / "Pulumi.local.yaml").read_text())
    stack["config"]["neuron-serving:cluster"]["kubeconfig"] = str(plane.kubeconfig)
    (directory / "stacks").mkdir()
    project = _project(directory)
    (directory / "stacks" / f"Pulumi.{_STACK}.yaml").write_text(yaml.safe_dump(stack))
    project.pulumi("up", "--stack", _STACK, "--yes", "--skip-preview")
    return project


def _bare(directory: Path, plane: ControlPlane, resources: list[list[object]], *, deploy: bool = True) -> Project:
    directory.mkdir()
    settings = {"name": "bare", "runtime": {"name": "python", "options": {"virtualenv": ".venv"}}}
    (directory / "Pulumi.yaml").write_text(yaml.safe_dump(settings))
    (directory / "__main__.py").write_text(_BARE.format(kubeconfig=str(plane.kubeconfig)))
    (directory / "resources.json").write_text(json.dumps(resources))
    project = _project(directory)
    if deploy:
        project.pulumi("up", "--stack", _STACK, "--yes", "--skip-preview")
    return project


def _project(directory: Path) -> Project:
    (directory / ".venv").symlink_to(ROOT / ".venv")
    project = Project(directory, pulumi_environment(directory, toolchain.ensure(report=lambda _: None)))
    project.pulumi("stack", "init", _STACK)
    return project


def _kubernetes_resources(project: Project) -> list[list[object]]:
    """Type and inputs of the project's Kubernetes objects, to be made once more under the same names elsewhere."""
    deployment = json.loads(project.pulumi("stack", "export", "--stack", _STACK))["deployment"]
    resources = [one for one in deployment["resources"] if one["type"].startswith("kubernetes:")]
    for resource in resources:
        resource["inputs"]["metadata"]["namespace"] = "default"
    return [[one["type"], one["inputs"]] for one in resources if not one["type"].endswith(":Namespace")]


def _timed(action: Callable[[], object]) -> float:
    started = time.monotonic()
    action()
    return time.monotonic() - started


if __name__ == "__main__":
    sys.exit(main())
