"""Starting the programs of a control plane with kwokctl: its configuration, and the folder that it works in."""

import hashlib
import shlex
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import yaml

from tools.control_plane import raw_get
from tools.control_plane.nodes import Object
from tools.control_plane.processes import Process, end_processes, recorded_processes

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", "kwokctl")
# What kwokctl calls the processes that must run, by their executables.
_KWOK = "kwok-controller"
COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", _KWOK)
# Reserved for benchmarks and routed nowhere (RFC 2544): what is sent to a simulated pod reaches nobody.
_POD_ADDRESSES = "198.18.0.1/16"
_TIMEOUT_SECONDS = 90
_PORT_NAMES = (
    "etcdPort",
    "etcdPeerPort",
    "kubeApiserverPort",
    "kubeControllerManagerPort",
    "kubeSchedulerPort",
    "kwokControllerPort",
)


class KwokctlError(Exception):
    """kwokctl could not start the control plane; the message has the end of what it said."""


@dataclass(frozen=True)
class Layout:
    """Where things are in the folder of a control plane."""

    directory: Path

    @property
    def cluster_name(self) -> str:
        return f"neuron-serving-{hashlib.sha256(str(self.directory).encode()).hexdigest()[:8]}"

    @property
    def kubeconfig(self) -> Path:
        return self.directory / "kubeconfig"

    @property
    def record(self) -> Path:
        return self.directory / "record.json"

    @property
    def work_directory(self) -> Path:
        return self.directory / "kwok"

    @property
    def cluster(self) -> Path:
        return self.work_directory / "clusters" / self.cluster_name

    @property
    def pid_files(self) -> Path:
        return self.cluster / "pids"

    @property
    def pki(self) -> Path:
        return self.cluster / "pki"

    @property
    def kubectl(self) -> Path:
        return self.directory / "bin" / "kubectl"

    def processes(self) -> tuple[Process, ...]:
        """The processes that were started in the folder, whether they run or not."""
        return recorded_processes(self.pid_files, self.directory)


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody listens on now, all different."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def render_config(programs: Mapping[str, str], ports: Mapping[str, int]) -> Object:
    """kwokctl's configuration: our programs, everything on loopback, stages as resources that can change later."""
    options = {
        "runtime": "binary",
        "bindAddress": "127.0.0.1",
        "enableCRDs": ["Stage"],
        "etcdBinary": programs["etcd"],
        "kubeApiserverBinary": programs["kube-apiserver"],
        "kubeControllerManagerBinary": programs["kube-controller-manager"],
        "kubeSchedulerBinary": programs["kube-scheduler"],
        "kwokControllerBinary": programs["kwok"],
        **ports,
    }
    return {
        "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
        "kind": "KwokctlConfiguration",
        "options": options,
        "componentsPatches": [
            # The data lives as long as the processes.
            _extra_argument("etcd", "unsafe-no-fsync", "true"),
            _extra_argument(_KWOK, "cidr", _POD_ADDRESSES),
        ],
    }


def _extra_argument(component: str, key: str, value: str) -> Object:
    return {"name": component, "extraArgs": [{"key": key, "value": value}]}


def create_cluster(layout: Layout, programs: Mapping[str, str]) -> int:
    """Start all programs in a new folder and wait until the API server answers; the result is its port.

    Raises:
        KwokctlError: it fails, or does not come to an end.
    """
    ports = dict(zip(_PORT_NAMES, free_ports(len(_PORT_NAMES)), strict=True))
    port = ports["kubeApiserverPort"]
    layout.pid_files.mkdir(parents=True)
    _put_kubectl(layout, port)
    config_file = layout.directory / "kwokctl.yaml"
    config_file.write_text(yaml.safe_dump(render_config(programs, ports)), encoding="utf-8")
    options = ["--config", str(config_file), "--kubeconfig", str(layout.kubeconfig)]
    _run(layout, programs["kwokctl"], "create", "cluster", *options, "--timeout", f"{_TIMEOUT_SECONDS}s")
    return port


def restart_kwok(layout: Layout, programs: Mapping[str, str]) -> None:
    """Start kwok anew, so that it looks for its stages at once.

    Its first look is before there are any; it then looks again after ever longer pauses, which takes 5 s and more.
    """
    end_processes(one for one in layout.processes() if one.name == _KWOK)
    # Where nobody collects ended processes, kwokctl takes their pid for a running one.
    (layout.pid_files / f"{_KWOK}.pid").unlink()
    _run(layout, programs["kwokctl"], "start", "cluster")


def _run(layout: Layout, kwokctl: str, *arguments: str) -> None:
    command = [kwokctl, *arguments, "--name", layout.cluster_name]
    environment = {
        "HOME": str(layout.directory),
        "KWOK_WORKDIR": str(layout.work_directory),
        "PATH": str(layout.kubectl.parent),
    }
    log = layout.directory / "kwokctl.log"
    with log.open("a", encoding="utf-8") as output:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
        # Recorded with its children: whoever cleans up after a killed run finds it too.
        (layout.pid_files / "kwokctl.pid").write_text(str(process.pid), encoding="utf-8")
        try:
            process.wait(_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            raise KwokctlError(
                f"{' '.join(arguments[:2])} did not end within {_TIMEOUT_SECONDS} s, see {log}"
            ) from None
        finally:
            process.kill()
            process.wait()
    if process.returncode != 0:
        last_line = (log.read_text(encoding="utf-8", errors="replace").strip().splitlines() or ["no output"])[-1]
        raise KwokctlError(f"kwokctl ended with {process.returncode}, see {layout.directory}: {last_line}")


def _put_kubectl(layout: Layout, port: int) -> None:
    """The stand-in for kubectl that raw_get describes."""
    layout.kubectl.parent.mkdir()
    command = shlex.join([sys.executable, "-I", "-S", raw_get.__file__, str(port), str(layout.pki)])
    layout.kubectl.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
    layout.kubectl.chmod(0o700)
