"""The life of a control plane: start, reuse, replace, stop."""

import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from neuron.startup import WARM, StartUp
from tools import toolchain
from tools.control_plane.api import Api, ApiError
from tools.control_plane.configure import configure_custom_resources, configure_nodes, configure_stages
from tools.control_plane.crds import DEFAULT_SOURCES, all_definitions
from tools.control_plane.kwokctl import COMPONENTS, PROGRAMS, KwokctlError, Layout, create_cluster, restart_kwok
from tools.control_plane.nodes import NodeGroup
from tools.control_plane.processes import end_processes
from tools.control_plane.raw_get import raw_get
from tools.control_plane.stages import Simulation
from tools.errors import Report, report_line
from tools.versions import ROOT

DEFAULT_DIRECTORY = ROOT / ".local" / "control-plane"
DEFAULT_TIME_FACTOR = 20.0


class ControlPlaneError(Exception):
    """The control plane cannot be had; the message is for the user."""


@dataclass(frozen=True)
class Record:
    """What a control plane was started with, as kept in its folder; `configuration` is None until it is complete."""

    port: int
    programs: dict[str, str]
    configuration: dict[str, Any] | None

    @classmethod
    def read(cls, file: Path) -> "Record | None":
        """None where the file is missing or was written only in part."""
        try:
            return cls(**json.loads(file.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def write(self, file: Path) -> None:
        file.write_text(json.dumps(asdict(self)), encoding="utf-8")


@dataclass(frozen=True)
class ControlPlane:
    """A control plane whose processes and files all belong to one folder. Every method may be called in any state.

    `crds` names the custom resources that it serves, of tools.control_plane.crds.SOURCES.
    """

    directory: Path = DEFAULT_DIRECTORY
    node_groups: tuple[NodeGroup, ...] = ()
    start_up: StartUp = WARM
    time_factor: float = DEFAULT_TIME_FACTOR
    crds: tuple[str, ...] = DEFAULT_SOURCES

    @property
    def kubeconfig(self) -> Path:
        """Where the kubeconfig is while the control plane runs."""
        return self._layout.kubeconfig

    @property
    def processes(self) -> dict[str, int]:
        """The pids of the processes that run, by the names of their programs."""
        return {process.name: process.pid for process in self._layout.processes() if process.is_running}

    @property
    def is_running(self) -> bool:
        """Whether all processes run and the API server is ready."""
        record = Record.read(self._layout.record)
        if record is None or not set(COMPONENTS) <= self.processes.keys():
            return False
        try:
            raw_get(record.port, self._layout.pki, "/readyz")
        except OSError:
            return False
        return True

    def start(self, report: Report = report_line) -> None:
        """Make the control plane run with these nodes and times.

        One that runs is kept: untouched if it is the same, else its nodes and stages are changed. Anything else in the
        folder is replaced.

        Raises:
            ControlPlaneError: it does not start.
            ToolchainError: a program cannot be had.
        """
        tools = toolchain.ensure(PROGRAMS, report)
        programs = {name: str(tools.path(name)) for name in PROGRAMS}
        started = time.monotonic()
        with self._locked(report), _explained():
            done = self._start(programs, report)
        report(f"control plane: {done} in {time.monotonic() - started:.1f} s")

    def stop(self, report: Report = report_line) -> None:
        """End all processes and remove the folder; harmless where there is none.

        Raises:
            ControlPlaneError: something cannot be ended or removed.
        """
        if not self._layout.directory.exists():
            report("control plane: there is none to stop")
            return
        with self._locked(report), _explained():
            self._remove()
        report("control plane: stopped and removed")

    @property
    def recorded_configuration(self) -> dict[str, Any] | None:
        """Node groups, start-up and time factor that the folder's control plane was last configured with."""
        record = Record.read(self._layout.record)
        return record.configuration if record else None

    @property
    def _layout(self) -> Layout:
        return Layout(self.directory.resolve())

    @property
    def _configuration(self) -> dict[str, Any]:
        groups = {
            group.name: {"instance_type": group.instance.name, "nodes": group.nodes} for group in self.node_groups
        }
        times = {"start_up": asdict(self.start_up), "time_factor": self.time_factor}
        return {"node_groups": groups, **times, "crds": list(self.crds)}

    @property
    def _summary(self) -> str:
        return ", ".join(f"{group.nodes} x {group.instance.name}" for group in self.node_groups) or "no nodes"

    def _start(self, programs: Mapping[str, str], report: Report) -> str:
        """Do it and say in a word what was done."""
        # First of all, because it may have to download them.
        definitions = all_definitions(self.crds, report)
        record = Record.read(self._layout.record)
        is_new = record is None or record.programs != programs or not self.is_running
        if record is None or is_new:
            record = self._create(programs, report)
        elif record.configuration == self._configuration:
            return "runs already, nothing to change"
        # Without a configuration while it is incomplete: whoever comes after a killed run completes it.
        replace(record, configuration=None).write(self._layout.record)
        report(f"control plane: configuring {self._summary}, {len(definitions)} custom resources")
        api = Api(self.kubeconfig)
        configure_stages(api, Simulation(self.start_up, self.time_factor))
        if is_new:
            restart_kwok(self._layout, programs)
        configure_nodes(api, self.node_groups)
        configure_custom_resources(api, definitions)
        replace(record, configuration=self._configuration).write(self._layout.record)
        return "ready" if is_new else "changed"

    def _create(self, programs: Mapping[str, str], report: Report) -> Record:
        if self._layout.directory.exists():
            report("control plane: replacing one that is stale or incomplete")
            self._remove()
        report(f"control plane: starting {', '.join(COMPONENTS)}")
        self._layout.directory.mkdir(mode=0o700)
        try:
            port = create_cluster(self._layout, programs)
        except BaseException:
            # The folder stays, for its logs.
            end_processes(self._layout.processes())
            raise
        self.kubeconfig.chmod(0o600)
        return Record(port, dict(programs), None)

    def _remove(self) -> None:
        end_processes(self._layout.processes())
        shutil.rmtree(self._layout.directory)

    @contextmanager
    def _locked(self, report: Report) -> Iterator[None]:
        """One at a time. The lock is on the parent folder, because this folder itself comes and goes."""
        parent = self._layout.directory.parent
        parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(parent, os.O_RDONLY)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                report(f"control plane: another command works in {parent}, waiting")
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except (ApiError, KwokctlError, OSError) as error:
        raise ControlPlaneError(f"control plane: {error}") from error
