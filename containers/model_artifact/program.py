"""What both programs have in common: their options, and how they end."""

import argparse
import errno
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from containers.model_artifact.description import Description, read_description
from containers.model_artifact.errors import ArtifactError, Stopped
from containers.model_artifact.local import Local, local_parts
from containers.model_artifact.report import Report


@dataclass(frozen=True)
class Job:
    """What a program is to do. `root` is the cache's directory for the model at its revision."""

    description: Description
    local: Local
    root: Path
    all_hashes: bool
    server_arguments: list[str]
    on_miss: str


def parser(description: str | None) -> argparse.ArgumentParser:
    """The options that both programs have."""
    options = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    options.add_argument("--artifact", type=Path, required=True, help="JSON file that describes the artifact")
    options.add_argument("--cache", type=Path, required=True, help="where the cache is mounted")
    options.add_argument("--local", type=Path, required=True, help="directory of the pod for model/ and artifacts/")
    options.add_argument("--hashes", choices=["all", "sample"], default="all", help="which files' hashes to check")
    options.add_argument("--termination-log", type=Path, default=Path("/dev/termination-log"))
    options.add_argument("--progress-seconds", type=float, default=10, help="time between two lines of one stage")
    options.add_argument("server_arguments", nargs="*", help="after --: the arguments of vLLM's server, unchanged")
    options.set_defaults(on_miss="fail")
    return options


def run(name: str, options: argparse.Namespace, work: Callable[[Job, Report], str]) -> int:
    """The exit code: 0 and what `work` says it did, or 1 and one line about what is wrong."""
    report = Report(name, options.termination_log, options.progress_seconds)
    signal.signal(signal.SIGTERM, _stop)
    try:
        report.end(work(_job(options), report))
    except ArtifactError as error:
        report.end(f"failed: {error}")
    except OSError as error:
        report.end(f"failed: {_explain(error)}")
    except Stopped:
        report.end("failed: stopped by SIGTERM; run again to go on")
    else:
        return 0
    return 1


def _job(options: argparse.Namespace) -> Job:
    description = read_description(options.artifact)
    if not options.cache.is_dir():
        raise ArtifactError(f"the cache is not mounted: {options.cache} is no directory")
    options.local.mkdir(parents=True, exist_ok=True)
    return Job(
        description=description,
        local=local_parts(options.local, description),
        root=(options.cache / description.prefix).parent,
        all_hashes=options.hashes == "all",
        server_arguments=options.server_arguments,
        on_miss=options.on_miss,
    )


def _explain(error: OSError) -> str:
    where = f": {error.filename}" if error.filename else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"no space left on the disk{where}; what is complete is kept, run again with more"
    return f"{error.strerror or error}{where}"


def _stop(_signal: int, _frame: FrameType | None) -> None:
    """Python is process 1 here, which no signal ends by default."""
    raise Stopped
