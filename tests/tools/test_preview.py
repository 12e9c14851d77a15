"""`make preview` around the CLI, which a stand-in plays here."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tools import preview
from tools.versions import ROOT

# Writes an event log as the CLI does, and waits for an interrupt where the stack is called workshop.
PULUMI = f"""#!{sys.executable}
import json, signal, sys
def cancel(*_):
    print("cancelled", flush=True)
    sys.exit(1)
signal.signal(signal.SIGINT, cancel)
print("previewing", flush=True)
arguments = sys.argv[1:]
if "--event-log" in arguments:
    urn = "urn:pulumi:local::neuron-serving::kubernetes:core/v1:ConfigMap::settings"
    metadata = {{"op": "create", "urn": urn, "logical": True, "new": {{"inputs": {{"data": {{"x": "1"}}}}}}}}
    with open(arguments[arguments.index("--event-log") + 1], "w") as log:
        print(json.dumps({{"resourcePreEvent": {{"metadata": metadata}}}}), file=log)
        print(json.dumps({{"summaryEvent": {{"resourceChanges": {{"create": 1}}}}}}), file=log)
if "workshop" in arguments:
    signal.pause()
sys.exit(4 if "--expect-no-changes" in arguments else 0)
"""
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Starts `python -m tools.preview` with a Pulumi of the user's own, in a process group of its own."""
    executable = tmp_path / "pulumi"
    executable.write_text(PULUMI)
    executable.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PULUMI_BACKEND_URL": "file://elsewhere"}

    def run(*arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "tools.preview", *arguments],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    return run


def test_the_comment_is_all_of_standard_output_and_progress_goes_to_standard_error(start: Start) -> None:
    process = start("local", "--format", "markdown")
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert output.startswith("<!-- neuron-serving preview of local -->\n")
    assert "**1 created**" in output
    assert errors == "previewing\n"


def test_the_exit_code_is_that_of_pulumi_and_its_options_follow_two_dashes(start: Start) -> None:
    process = start("local", "--", "--expect-no-changes")
    process.communicate(timeout=60)
    assert process.returncode == 4


@pytest.mark.parametrize("arguments", [(), ("--format", "markdown")])
def test_an_interrupt_waits_for_pulumi_and_leaves_no_traceback(start: Start, arguments: tuple[str, ...]) -> None:
    process = start("workshop", *arguments)
    # Where the CLI's first line arrives depends on who shows it.
    stream = process.stderr if arguments else process.stdout
    assert stream is not None
    assert stream.readline() == "previewing\n"
    os.killpg(process.pid, signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == preview.INTERRUPTED
    assert "cancelled" in output + errors
    assert "interrupted; a preview changes nothing" in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("stack", "found"),
    [
        ("nope", "STACK=nope has no stacks/Pulumi.nope.yaml"),
        ("", "STACK is empty"),
        ("../stacks/local", "STACK=../stacks/local has no stacks/Pulumi.../stacks/local.yaml"),
    ],
)
def test_a_stack_that_does_not_exist_is_refused_with_those_that_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], stack: str, found: str
) -> None:
    monkeypatch.setattr("sys.argv", ["preview", stack])
    assert preview.main() == 1
    (line,) = capsys.readouterr().err.splitlines()
    stacks = sorted(file.stem.removeprefix("Pulumi.") for file in (ROOT / "stacks").glob("Pulumi.*.yaml"))
    assert line.startswith(f"error: {found}; the stacks are {', '.join(stacks)}")
