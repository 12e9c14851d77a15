"""The comments that pull requests to a deployed stack get from the real CLI and pack; see pull_requests/README.md."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from stand_ins.account import opened_account
from stand_ins.toolchain import with_stand_ins
from tests.engine.stack import NAME, PROJECT, Stack, make_stack
from tools import toolchain
from tools.control_plane import ControlPlane
from tools.environment import pulumi_environment
from tools.review.comment import LONGEST_BYTES, Run, render
from tools.review.events import parse

pytestmark = pytest.mark.long

PULL_REQUESTS = Path(__file__).parent / "pull_requests"
GOLDEN = Path(__file__).parent / "golden"
STACK_FILE = "Pulumi.demo.yaml"
BASE = "base"
TOKEN = "hf_madeUpForThisTestMadeUpForThisTest1"  # noqa: S105 - made up
NAMES = sorted(folder.name for folder in PULL_REQUESTS.iterdir() if folder.is_dir() and folder.name != BASE)
# How Pulumi ends the names that it makes, and no date of an AMI release.
_RANDOM = re.compile(r"-(?!20\d{6})[0-9a-f]{7,8}\b")
_FOLDED = re.compile(r"<details>.*?</details>", re.DOTALL)


@pytest.fixture(scope="module")
def deployed(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The stack of `base`, deployed; the control plane, whose nodes are inf2.xlarge, plays its cluster."""
    file = PULL_REQUESTS / BASE / STACK_FILE
    with opened_account(file, control_plane.kubeconfig) as account:
        directory = tmp_path_factory.mktemp("pull-requests") / "demo"
        stack = make_stack(directory, control_plane.kubeconfig, nodes=2)
        stack.environment = {
            **pulumi_environment(directory, with_stand_ins(toolchain.ensure(report=lambda _: None))),
            **account,
            "PULUMI_DEBUG_COMMANDS": "true",
        }
        stack.values = settings(file)
        up = stack.up()
        assert up.exit_code == 0, up.output
        yield stack
        stack.values = settings(file)
        stack.change_main("")
        destroyed = stack.destroy()
        assert destroyed.exit_code == 0, destroyed.output


def settings(file: Path) -> dict[str, object]:
    """The project's settings in a stack file, by key."""
    config = yaml.safe_load(file.read_text())["config"]
    return {key.partition(":")[2]: value for key, value in config.items() if key.startswith(f"{PROJECT}:")}


def comment(stack: Stack, pull_request: str) -> tuple[int, str]:
    """Preview a pull request; the CLI's exit code and the comment, without what differs from run to run."""
    folder = PULL_REQUESTS / pull_request
    transform, file = folder / "transform.py", folder / STACK_FILE
    stack.change_main(transform.read_text() if transform.exists() else "")
    stack.values = settings(file if file.exists() else PULL_REQUESTS / BASE / STACK_FILE)
    events = stack.directory / f"{pull_request}.events"
    result = stack.preview("--event-log", str(events))
    rendered = render(parse(events.read_text().splitlines()), Run(NAME, result.exit_code, result.output.splitlines()))
    return result.exit_code, _RANDOM.sub("-xxxxxxx", rendered)


@pytest.mark.parametrize("pull_request", NAMES)
def test_a_pull_request_gets_a_comment_that_can_be_read_in_half_a_minute(deployed: Stack, pull_request: str) -> None:
    exit_code, rendered = comment(deployed, pull_request)
    golden = GOLDEN / f"{pull_request}.md"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(rendered)
    assert rendered == golden.read_text()
    assert TOKEN not in rendered
    assert len(rendered.encode()) <= LONGEST_BYTES
    assert len(_FOLDED.sub("", rendered).split()) < 200
    assert (exit_code == 0) == ("can be applied" in rendered)
