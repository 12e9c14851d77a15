"""Processes are ended by their recorded pid, and only if the pid is still theirs."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.control_plane.processes import end_processes, recorded_processes


@contextmanager
def sleeping_process(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process with `arguments` in its command line."""
    script = "import time; print(flush=True); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", script, *arguments], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        # Before its first line it may not have its command line yet.
        process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def record(directory: Path, name: str, pid: int | str) -> None:
    (directory / "pids").mkdir(exist_ok=True)
    (directory / "pids" / f"{name}.pid").write_text(str(pid))


def test_a_recorded_process_is_ended(tmp_path: Path) -> None:
    with sleeping_process(f"--data-dir={tmp_path}/etcd") as process:
        record(tmp_path, "etcd", process.pid)
        [recorded] = recorded_processes(tmp_path / "pids", tmp_path)
        assert recorded.is_running
        end_processes([recorded])
        assert not recorded.is_running
        assert process.wait() < 0


def test_a_recycled_pid_is_left_alone(tmp_path: Path) -> None:
    with sleeping_process("--data-dir=/somewhere/else") as stranger:
        record(tmp_path, "etcd", stranger.pid)
        [recorded] = recorded_processes(tmp_path / "pids", tmp_path)
        assert not recorded.is_running
        end_processes([recorded])
        assert stranger.poll() is None


def test_a_folder_whose_name_only_begins_alike_is_another_owner(tmp_path: Path) -> None:
    with sleeping_process(f"--data-dir={tmp_path}-2/etcd") as stranger:
        record(tmp_path, "etcd", stranger.pid)
        [recorded] = recorded_processes(tmp_path / "pids", tmp_path)
        assert not recorded.is_running


def test_damaged_or_missing_pid_files_name_no_process(tmp_path: Path) -> None:
    assert recorded_processes(tmp_path / "pids", tmp_path) == ()
    record(tmp_path, "etcd", "")
    assert recorded_processes(tmp_path / "pids", tmp_path) == ()
