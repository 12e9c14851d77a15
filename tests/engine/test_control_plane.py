"""The life of a control plane: started, found again, replaced, changed and removed."""

import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from neuron.startup import COLD
from tests.engine.conftest import StartControlPlane, node_groups, wait_until
from tools.control_plane import ControlPlane
from tools.control_plane.api import Api
from tools.control_plane.nodes import render_nodes
from tools.control_plane.status import read_status
from tools.versions import ROOT

LISTEN_STATE = "0A"
LOOPBACK = {"0100007F", "00000000000000000000000001000000"}


def listening_addresses(pids: set[int]) -> list[str]:
    """ADDRESS:PORT in hexadecimal for every TCP socket that one of the processes listens on."""
    links = [link for pid in pids for link in Path(f"/proc/{pid}/fd").iterdir()]
    inodes = {str(link.readlink()).removeprefix("socket:[").removesuffix("]") for link in links if link.is_symlink()}
    rows = [row.split() for table in ("tcp", "tcp6") for row in Path(f"/proc/net/{table}").read_text().splitlines()[1:]]
    return [row[1] for row in rows if row[3] == LISTEN_STATE and row[9] in inodes]


def command_line(pid: int) -> bytes:
    """Empty for a process that has ended."""
    file = Path(f"/proc/{pid}/cmdline")
    return file.read_bytes() if file.exists() else b""


def accepts_connections(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def command(directory: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "tools.control_plane", *arguments, "--directory", str(directory)]


def run(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(directory, *arguments), cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
    )


def node_names(plane: ControlPlane) -> set[str]:
    return {node.name for node in read_status(Api(plane.kubeconfig)).nodes}


def test_a_second_start_changes_nothing_and_is_quick(control_plane: ControlPlane) -> None:
    processes = control_plane.processes
    lines: list[str] = []
    started = time.monotonic()
    control_plane.start(lines.append)
    assert time.monotonic() - started < 3
    assert "nothing to change" in lines[-1]
    assert control_plane.processes == processes


def test_the_nodes_are_those_that_were_asked_for_and_ready(control_plane: ControlPlane) -> None:
    status = read_status(Api(control_plane.kubeconfig))
    assert status.version == "v1.36.3"
    assert [(node.instance_type, node.is_ready, node.chips) for node in status.nodes] == [("inf2.xlarge", True, 1)] * 2
    wanted = {node["metadata"]["name"]: node for node in render_nodes(control_plane.node_groups)}
    for node in Api(control_plane.kubeconfig).get("/api/v1/nodes")["items"]:
        # kwok adds some of its own.
        assert node["metadata"]["labels"].items() >= wanted[node["metadata"]["name"]]["metadata"]["labels"].items()
        assert node["status"]["allocatable"] == wanted[node["metadata"]["name"]]["status"]["allocatable"]
        assert "taints" not in node["spec"]


def test_the_custom_resources_of_the_prometheus_operator_are_validated(control_plane: ControlPlane) -> None:
    api = Api(control_plane.kubeconfig)
    path = "/apis/monitoring.coreos.com/v1/namespaces/default/podmonitors/vllm"
    body = {"apiVersion": "monitoring.coreos.com/v1", "kind": "PodMonitor", "metadata": {"name": "vllm"}}
    with pytest.raises(Exception, match=r"spec: Required value|spec.selector"):
        api.apply(path, body)
    spec = {"selector": {}, "podMetricsEndpoints": [{"port": "http"}]}
    assert api.apply(path, {**body, "spec": spec})["spec"] == spec
    api.delete(path)


def test_nothing_listens_beyond_loopback(control_plane: ControlPlane) -> None:
    addresses = listening_addresses(set(control_plane.processes.values()))
    # Client and peer port of etcd, and one port for each of the other four programs.
    assert len(addresses) == 6
    assert {address.partition(":")[0] for address in addresses} <= LOOPBACK


def test_only_the_user_can_read_the_kubeconfig(control_plane: ControlPlane) -> None:
    assert control_plane.kubeconfig.is_relative_to(control_plane.directory)
    assert control_plane.kubeconfig.stat().st_mode & 0o077 == 0
    assert control_plane.directory.stat().st_mode & 0o077 == 0


def test_a_control_plane_with_a_killed_process_is_replaced(start_control_plane: StartControlPlane) -> None:
    plane = start_control_plane()
    before = plane.processes
    os.kill(before["kube-scheduler"], signal.SIGKILL)
    wait_until(lambda: not plane.is_running, seconds=5)
    lines: list[str] = []
    plane.start(lines.append)
    assert plane.is_running
    assert any("replacing" in line for line in lines)
    assert not set(before.values()) & set(plane.processes.values())


def test_a_control_plane_whose_api_server_hangs_is_replaced(start_control_plane: StartControlPlane) -> None:
    plane = start_control_plane()
    os.kill(plane.processes["kube-apiserver"], signal.SIGSTOP)
    assert not plane.is_running
    plane.start()
    assert plane.is_running


def test_other_nodes_and_times_change_the_one_that_runs(start_control_plane: StartControlPlane) -> None:
    before = start_control_plane({"inf2.xlarge": 2})
    after = ControlPlane(before.directory, node_groups({"inf2.xlarge": 1, "trn1.2xlarge": 1}), COLD, 50)
    kept = {node["metadata"]["name"] for node in render_nodes(node_groups({"inf2.xlarge": 1}))}
    processes = before.processes
    after.start()
    assert after.processes == processes
    assert kept < node_names(after)
    assert node_names(after) == {node["metadata"]["name"] for node in render_nodes(after.node_groups)}
    stage = Api(after.kubeconfig).get("/apis/kwok.x-k8s.io/v1alpha1/stages/server-schedule")
    assert f"$prepare := {COLD.prepare_seconds * 1000 / 50} " in stage["spec"]["steps"][0]["patch"]["template"]


def test_a_stop_leaves_no_process_no_port_and_no_folder(tmp_path: Path) -> None:
    plane = ControlPlane(tmp_path / "control-plane", node_groups({"inf2.xlarge": 1}))
    plane.start()
    processes = plane.processes
    ports = {int(address.partition(":")[2], 16) for address in listening_addresses(set(processes.values()))}
    assert (len(processes), len(ports)) == (5, 6)
    plane.stop()
    assert not any(command_line(pid) for pid in processes.values())
    assert not any(accepts_connections(port) for port in ports)
    assert list(tmp_path.iterdir()) == []
    plane.stop()


def test_the_command_starts_shows_and_stops_one_and_leaves_the_users_kubeconfig_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("KUBECONFIG", str(home / "config"))
    directory = tmp_path / "plane"
    try:
        up = run(directory, "up", "--node", "trn1.2xlarge=1", "--time-factor", "20", "--start", "cold")
        assert up.returncode == 0, up.stderr
        assert up.stdout.splitlines()[-1] == "time runs 20x: a cold start of 4 min 9 s takes 12 s"
        status = run(directory, "status").stdout
        assert "API server v1.36.3 at https://127.0.0.1:" in status
        assert "trn1.2xlarge  us-west-2b  yes    0 of 1  7910m  30581Mi" in status
        assert run(directory, "kubeconfig").stdout == f"{directory / 'kubeconfig'}\n"
    finally:
        down = run(directory, "down")
    assert down.returncode == 0, down.stderr
    assert run(directory, "down").returncode == 0
    assert run(directory, "status").returncode == 1
    assert list(home.iterdir()) == []
    assert list(tmp_path.iterdir()) == [home]


def test_two_commands_at_once_make_one_control_plane(tmp_path: Path) -> None:
    directory = tmp_path / "plane"
    try:
        with ThreadPoolExecutor() as pool:
            results = list(pool.map(lambda _: run(directory, "up", "--node", "inf2.xlarge=1"), range(2)))
        assert [result.returncode for result in results] == [0, 0], results
        assert sum("nothing to change" in result.stdout for result in results) == 1
    finally:
        run(directory, "down")


@pytest.mark.parametrize("seconds", [0.1, 1.0, 2.5])
def test_what_a_killed_start_leaves_is_replaced_or_completed(tmp_path: Path, seconds: float) -> None:
    plane = ControlPlane(tmp_path / "plane", node_groups({"inf2.xlarge": 1}))
    killed = subprocess.Popen(command(plane.directory, "up", "--node", "inf2.xlarge=1"), cwd=ROOT)
    try:
        wait_until(plane.directory.exists, seconds=30)
        time.sleep(seconds)
        killed.kill()
        killed.wait()
        plane.start()
        assert plane.is_running
        assert len(node_names(plane)) == 1
    finally:
        killed.kill()
        killed.wait()
        plane.stop()
