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

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", "kwokctl")
# What kwokctl calls the processes that must run, by their executables.
COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok-controller")
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
    def logs(self) -> Path:
        return self.cluster / "logs"


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
            _extra_argument("kwok-controller", "cidr", _POD_ADDRESSES),
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
    config_file = layout.directory / "kwokctl.yaml"
    config_file.write_text(yaml.safe_dump(render_config(programs, ports)), encoding="utf-8")
    command = [programs["kwokctl"], "create", "cluster", "--name", layout.cluster_name]
    command += [
        "--config",
        str(config_file),
        "--kubeconfig",
        str(layout.kubeconfig),
        "--timeout",
        f"{_TIMEOUT_SECONDS}s",
    ]
    environment = {
        "HOME": str(layout.directory),
        "KWOK_WORKDIR": str(layout.work_directory),
        "PATH": str(_kubectl(layout, port)),
    }
    log = layout.directory / "kwokctl.log"
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
        # Recorded with its children: whoever cleans up after a killed run finds it too.
        (layout.pid_files / "kwokctl.pid").write_text(str(process.pid), encoding="utf-8")
        try:
            process.wait(_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            raise KwokctlError(f"kwokctl did not end within {_TIMEOUT_SECONDS} s") from None
        finally:
            process.kill()
            process.wait()
    if process.returncode != 0:
        last_line = (log.read_text(encoding="utf-8", errors="replace").strip().splitlines() or ["no output"])[-1]
        raise KwokctlError(f"kwokctl ended with {process.returncode}: {last_line}")
    return port


def _kubectl(layout: Layout, port: int) -> Path:
    """A folder with the stand-in for kubectl that raw_get describes."""
    folder = layout.directory / "bin"
    folder.mkdir()
    command = shlex.join([sys.executable, "-I", "-S", raw_get.__file__, str(port), str(layout.pki)])
    script = folder / "kubectl"
    script.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
    script.chmod(0o700)
    return folder
