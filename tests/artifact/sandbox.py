"""Runs the real programs as they run in a pod, with stand-ins for what is around them."""

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from neuron.artifact import Artifact, artifact
from neuron.images import image_line, model_arguments
from neuron.instances import instance_type
from neuron.model import Model
from tests.unit.builders import model

REPOSITORY = Path(__file__).parents[2]
STANDINS = Path(__file__).parent / "standins"

# By the stand-in's name for a line: the line and a type that it runs on.
LINES = {
    "v0": ("v0-0.9.1", "trn1.2xlarge"),
    "nxdi": ("nxdi-0.13", "inf2.xlarge"),
    "plugin": ("plugin-0.24", "trn2.3xlarge"),
}
# For a program that hangs; on a busy machine one takes ten seconds.
LONGEST_SECONDS = 180


@dataclass(frozen=True)
class Ended:
    """How a program ended: exit code (negative: by that signal), log, termination message."""

    code: int
    log: str
    message: str

    @property
    def failure(self) -> str:
        """The message of a program that failed as it should: exit code 1, no traceback, one line of reason."""
        assert self.code == 1, self.log
        assert "Traceback" not in self.log, self.log
        assert self.message.startswith("failed: "), self.message
        return self.message.partition("\n")[0]


@dataclass(frozen=True)
class Sandbox:
    """A pod: a mount of the cache, a disk of its own, and an artifact that it wants."""

    directory: Path
    cache: Path
    line: str = "nxdi"
    max_num_seqs: int = 4
    sharded_checkpoint: bool = False
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def local(self) -> Path:
        """The pod's disk."""
        return self.directory / "local"

    @property
    def artifact(self) -> Artifact:
        """What the pod wants."""
        name, instance = LINES[self.line]
        return artifact(image_line(name), self._model, {"enable_bucketing": False}, instance_type(instance))

    @property
    def prefix(self) -> Path:
        """Where the cache has it."""
        return self.cache / self.artifact.prefix

    def server_arguments(self) -> list[str]:
        """The server's arguments, with the model's own copy in the pod."""
        name, _ = LINES[self.line]
        path = str(self.local / "model")
        return list(model_arguments(image_line(name), self._model, {"enable_bucketing": False}, path))

    def other_pod(self, name: str, **changes: Any) -> "Sandbox":
        """A pod with another disk and the same cache."""
        return replace(self, directory=self.directory.parent / name, **changes)

    def publish(self, *options: str, **environment: str) -> Ended:
        """Run the publish program."""
        return self.end(self.begin("publish", *options, **environment))

    def load(self, *options: str, **environment: str) -> Ended:
        """Run the load program."""
        return self.end(self.begin("load", *options, **environment))

    def begin(self, program: str, *options: str, **environment: str) -> subprocess.Popen[str]:
        """Start a program, in a process group of its own."""
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / "artifact.json").write_text(self.artifact.description())
        paths = ["--artifact", self.directory / "artifact.json", "--cache", self.cache, "--local", self.local]
        log = ["--termination-log", self.directory / "termination", "--progress-seconds", "1"]
        command = [sys.executable, "-m", f"containers.model_artifact.{program}", *paths, *log, *options, "--"]
        return subprocess.Popen(
            [*map(str, command), *self.server_arguments()],
            cwd=REPOSITORY,
            env=self._environment(environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def count_writes(self, program: str) -> int:
        """Run a program undisturbed; how often it wrote."""
        self.directory.mkdir(parents=True, exist_ok=True)
        events = self.directory / f"{program}.writes"
        ended = self.end(self.begin(program, STANDIN_EVENTS=str(events)))
        assert ended.code == 0, ended.log
        return events.stat().st_size

    def kill(self, program: str, at: int, **environment: str) -> Ended:
        """Run a program that SIGKILL ends, with its children, at its write number `at`."""
        self.directory.mkdir(parents=True, exist_ok=True)
        events = {"STANDIN_EVENTS": str(self.directory / f"{program}.writes"), "STANDIN_KILL_AT": str(at)}
        return self.end(self.begin(program, **events, **environment))

    def end(self, process: subprocess.Popen[str]) -> Ended:
        """Wait for a program that was started."""
        try:
            log, _ = process.communicate(timeout=LONGEST_SECONDS)
        finally:
            # Its children, too, which hold the pipe open.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        message = self.directory / "termination"
        return Ended(process.returncode, log, message.read_text() if message.exists() else "")

    def start_server(self) -> dict[str, object]:
        """What the stand-in for vLLM's server came up with: how ("loaded", "compiled"), config, own, whole, weights."""
        started = self.directory / "started.json"
        started.unlink(missing_ok=True)
        variable = image_line(LINES[self.line][0]).artifacts_variable
        environment = {
            variable: str(self.local / "artifacts"),
            "HF_HUB_OFFLINE": "1",
            "STANDIN_SERVER": "1",
            "STANDIN_STARTED": str(started),
        }
        subprocess.run(
            [sys.executable, "-m", "vllm.entrypoints.openai.api_server", *self.server_arguments()],
            cwd=self.directory,
            env=self._environment(environment),
            check=True,
            timeout=LONGEST_SECONDS,
        )
        return dict(json.loads(started.read_text()))

    def downloads(self) -> list[str]:
        """The files that the hub sent to this pod."""
        log = self.directory / "hub.log"
        return log.read_text().splitlines() if log.exists() else []

    @property
    def _model(self) -> Model:
        return replace(model(), max_num_seqs=self.max_num_seqs, sharded_checkpoint=self.sharded_checkpoint)

    def _environment(self, more: dict[str, str]) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(STANDINS),
            "HF_TOKEN": "hf_standin",
            "STANDIN_LINE": self.line,
            "STANDIN_MOUNT": str(self.cache),
            "STANDIN_HUB_LOG": str(self.directory / "hub.log"),
            **self.environment,
            **more,
        }


def published_once(directory: Path, **changes: Any) -> Path:
    """A cache in which one artifact is, that of a sandbox with these changes; not to be changed."""
    cache = directory / "mount"
    cache.mkdir()
    ended = Sandbox(directory / "pod", cache, **changes).publish()
    assert ended.code == 0, ended.log
    return cache


def published_files(pod: Sandbox) -> dict[str, bytes]:
    """What the newest manifest of the pod's artifact names, by local path: content that must have the hash it says."""
    newest = max(pod.prefix.glob("manifest-*.json"), key=lambda path: int(path.stem.partition("-")[2]))
    files = {}
    for path, file in json.loads(newest.read_text())["files"].items():
        files[path] = (pod.prefix.parent / file["place"]).read_bytes() if file["size"] else b""
        assert hashlib.sha256(files[path]).hexdigest() == file["sha256"]
    return files


def local_files(pod: Sandbox) -> dict[str, bytes]:
    """What a server in the pod would find, by local path."""
    parts = {part: tree(pod.local / part) for part in ("model", "artifacts")}
    return {f"{part}/{path}": content for part, files in parts.items() for path, content in files.items()}


def tree(directory: Path) -> dict[str, bytes]:
    """Every file below a directory, by its path, with its content."""
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}
