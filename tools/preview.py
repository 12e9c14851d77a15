"""`make preview`: `pulumi preview` of a stack under the policy pack, as text or as a comment for its pull request."""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools import toolchain
from tools.control_plane.plane import ControlPlaneError
from tools.environment import PROJECT_COPY, STATE_DIRECTORY, pulumi_environment
from tools.errors import ToolchainError, report_error_line
from tools.pulumi_cli import relay_pulumi, run_pulumi
from tools.review.comment import Run, render
from tools.review.events import parse
from tools.stack_files import UnknownStackError, copy_project, stack_file
from tools.versions import PinError

# Set by whoever has a Pulumi of their own, with a login and stacks: it is used as it is.
_BACKEND_VARIABLE = "PULUMI_BACKEND_URL"
INTERRUPTED = 130


@dataclass(frozen=True)
class _Session:
    """Where pulumi runs: its environment, options, and what stands in for what."""

    environment: dict[str, str]
    options: tuple[str, ...] = ()
    notice: str = ""


def preview(stack: str, *, is_offline: bool, as_markdown: bool, arguments: Sequence[str] = ()) -> int:
    """Preview a stack; returns pulumi's exit code. The comment goes to standard output, progress to standard error."""
    with _session(stack, is_offline) as session:
        options = ("--stack", stack, "--policy-pack", "policy", *session.options, *arguments)
        if as_markdown:
            return _comment(stack, session, options)
        if session.notice:
            print(session.notice, flush=True)
        exit_code = run_pulumi(session.environment, "preview", "--diff", *options)
        if session.notice:
            print(session.notice, flush=True)
        return exit_code


def _comment(stack: str, session: _Session, options: Sequence[str]) -> int:
    with tempfile.TemporaryDirectory(prefix="neuron-serving-preview-") as folder:
        log = Path(folder) / "events"
        # The switch that Pulumi's Automation API sets, too: it shows the option.
        environment = {**session.environment, "PULUMI_DEBUG_COMMANDS": "true"}
        command = ("preview", "--non-interactive", "--color", "never", "--event-log", str(log), *options)
        exit_code, last_lines = relay_pulumi(environment, report_error_line, *command)
        events = log.read_text(errors="replace").splitlines() if log.exists() else []
    print(render(parse(events), Run(stack, exit_code, last_lines, session.notice)), end="")
    return exit_code


@contextmanager
def _session(stack: str, is_offline: bool) -> Iterator[_Session]:
    file = stack_file(stack)
    if is_offline:
        # Its imports take a second or two, in which an interrupt would end in a traceback.
        from tools import offline

        with offline.stand_ins(file) as (environment, copied):
            yield _made(stack, environment, copied, offline.NOTICE)
    elif _BACKEND_VARIABLE in os.environ:
        yield _Session(dict(os.environ))
    else:
        environment = {**os.environ, **pulumi_environment(STATE_DIRECTORY, toolchain.ensure(report=report_error_line))}
        yield _made(stack, environment, copy_project(PROJECT_COPY, file))


def _made(stack: str, environment: dict[str, str], copied: Path, notice: str = "") -> _Session:
    """A session in a state of the checkout's own, in which the stack is made where it is not there yet."""
    project = str(copied.parent.parent)
    exit_code, lines = relay_pulumi(
        environment, lambda _: None, "--cwd", project, "stack", "select", "--create", stack, "--non-interactive"
    )
    if exit_code != 0:
        raise ToolchainError("\n".join(["pulumi cannot select the stack:", *lines]))
    return _Session(environment, ("--config-file", str(copied)), notice)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tools.preview", description=__doc__)
    parser.add_argument("stack", help="the name of a file stacks/Pulumi.<stack>.yaml")
    parser.add_argument("--offline", action="store_true", help="ask stand-ins, no account")
    parser.add_argument("--format", choices=("text", "markdown"), default="text")
    parser.add_argument("arguments", nargs="*", help="options of `pulumi preview`, after `--`")
    given = parser.parse_args()
    try:
        return preview(
            given.stack, is_offline=given.offline, as_markdown=given.format == "markdown", arguments=given.arguments
        )
    except (UnknownStackError, ToolchainError, PinError, ControlPlaneError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; a preview changes nothing", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
