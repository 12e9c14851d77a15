"""A stack of the program in a folder of its own, driven by the real Pulumi CLI against a control plane."""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.engine.cli import Ended, run_pulumi
from tools import toolchain
from tools.environment import pulumi_environment
from tools.versions import ROOT

PROJECT = "neuron-serving"
NAME = "test"
# The parts of the checkout that a stack runs from; everything else of a run stays in the test's folder.
_PROGRAM = ("Pulumi.yaml", "__main__.py", "components", "neuron", "containers", "policy")


@dataclass
class Stack:
    """The program with one stack file. `values` are the stack's settings by key; `up` writes them before each run.

    Keys of other packages keep their prefix, as in aws:region.
    """

    directory: Path
    values: dict[str, Any]
    environment: dict[str, str] = field(default_factory=dict)
    name: str = NAME

    @property
    def file(self) -> Path:
        """The stack file."""
        return self.directory / "stacks" / f"Pulumi.{self.name}.yaml"

    def run(self, *arguments: str) -> Ended:
        """Run the CLI in the stack's folder."""
        self.write()
        return run_pulumi(self.directory, {**os.environ, **self.environment}, *arguments)

    def up(self, *arguments: str) -> Ended:
        """Update under the policy pack."""
        options = ("--yes", "--skip-preview=false", "--policy-pack", "policy")
        return self.run("up", "--stack", self.name, *options, *arguments)

    def preview(self, *arguments: str) -> Ended:
        """Preview under the policy pack."""
        return self.run("preview", "--stack", self.name, "--policy-pack", "policy", *arguments)

    def destroy(self, *arguments: str) -> Ended:
        """Remove what the stack made, whatever the program says by now."""
        return self.run("destroy", "--stack", self.name, "--yes", *arguments)

    def state(self) -> str:
        """The state file as it lies on disk."""
        files = self.directory.glob(f"state/.pulumi/stacks/**/{self.name}.json")
        return "".join(file.read_text() for file in files)

    def resources(self) -> list[str]:
        """Type tokens of all resources in the state."""
        state = self.state()
        deployed = json.loads(state)["checkpoint"]["latest"] if state else {}
        return [resource["type"] for resource in deployed.get("resources", [])]

    def change_main(self, before: str) -> None:
        """Run these lines of Python before the program: a foreign program that differs from ours in one respect."""
        main = self.directory / "__main__.py"
        main.write_text(f"{before}\n{(ROOT / '__main__.py').read_text()}")

    def write(self) -> None:
        """Write the stack file; a salt and secrets in it stay."""
        earlier = yaml.safe_load(self.file.read_text()) if self.file.exists() else {}
        kept = {key: value for key, value in earlier.items() if key != "config"}
        secrets = {key: value for key, value in earlier.get("config", {}).items() if "secure" in value}
        configuration = {key if ":" in key else f"{PROJECT}:{key}": value for key, value in self.values.items()}
        self.file.write_text(yaml.safe_dump({**kept, "config": {**secrets, **configuration}}, sort_keys=False))


def copy_project(directory: Path) -> None:
    """The program, without stacks, in a folder that is made for it."""
    directory.mkdir(parents=True)
    for name in _PROGRAM:
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, directory / name)
    (directory / ".venv").symlink_to(ROOT / ".venv")
    (directory / "stacks").mkdir()


def stack_values(name: str) -> dict[str, Any]:
    """The settings of a stack file of the checkout, free to change."""
    config = yaml.safe_load((ROOT / "stacks" / f"Pulumi.{name}.yaml").read_text())["config"]
    return {key.removeprefix(f"{PROJECT}:"): value for key, value in config.items()}


def make_stack(directory: Path, kubeconfig: Path, nodes: int, changes: Mapping[str, Any] | None = None) -> Stack:
    """A new stack with the settings of `local`, `nodes` nodes and a namespace named after its folder."""
    copy_project(directory)
    values = stack_values("local")
    values["cluster"]["kubeconfig"] = str(kubeconfig)
    values["nodeGroups"][0]["nodes"] = nodes
    values["serving"][0] |= {"namespace": directory.name, **(changes or {})}
    environment = pulumi_environment(directory, toolchain.ensure(report=lambda _: None))
    stack = Stack(directory, values, environment)
    stack.run("stack", "init", NAME)
    return stack
