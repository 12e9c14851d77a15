"""The real Pulumi CLI, as a user or a workflow calls it."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_RUN_SECONDS = 300


@dataclass(frozen=True)
class Ended:
    """What a run of the CLI printed, standard output and error in one, and how it ended."""

    exit_code: int
    output: str


def command(*arguments: str) -> list[str]:
    """The command line, for output that a program reads."""
    return ["pulumi", *arguments, "--non-interactive", "--color", "never"]


def run_pulumi(folder: Path, environment: Mapping[str, str], *arguments: str) -> Ended:
    """Run the CLI on the project in a folder, in this environment alone, to its end."""
    ended = subprocess.run(
        command(*arguments),
        cwd=folder,
        env=dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_RUN_SECONDS,
        check=False,
    )
    return Ended(ended.returncode, ended.stdout)
