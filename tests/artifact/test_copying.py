"""Copying as such: memory that does not grow, an end at the first error, a disk that is too small."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from containers.model_artifact.copying import BUFFERS, CHUNK_BYTES, copy_file, in_parallel
from containers.model_artifact.errors import ArtifactError
from containers.model_artifact.restore import check_space
from tests.artifact.sandbox import REPOSITORY

MIB = 1024 * 1024
LARGE_MIB = 256
PROGRAM = """
import sys
from pathlib import Path
from containers.model_artifact.copying import copy_file
copy_file(Path(sys.argv[1]), Path(sys.argv[2]), lambda count: None, hashed=True)
print(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
"""


def unwatched(_count: int) -> None:
    """Progress that nobody follows."""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    (tmp_path / "source").touch()
    os.truncate(tmp_path / "source", LARGE_MIB * MIB)
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "source"), str(tmp_path / "target")]
    peak_kib = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout
    assert (tmp_path / "target").stat().st_size == LARGE_MIB * MIB
    assert int(peak_kib) / 1024 < LARGE_MIB / 4


@pytest.mark.parametrize("size", [1, CHUNK_BYTES, 3 * BUFFERS * CHUNK_BYTES + 1])
def test_the_hash_is_that_of_the_copy_however_far_hashing_lags_behind(tmp_path: Path, size: int) -> None:
    content = os.urandom(size)
    (tmp_path / "source").write_bytes(content)
    digest = copy_file(tmp_path / "source", tmp_path / "target", unwatched, hashed=True)
    assert (tmp_path / "target").read_bytes() == content
    assert digest == hashlib.sha256(content).hexdigest()


def test_the_first_error_ends_the_copying_of_other_files_and_leaves_none_half_done(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"\1" * (3 * CHUNK_BYTES))

    def copy(name: str) -> str | None:
        if name == "missing":
            return copy_file(tmp_path / name, tmp_path / "never", unwatched, hashed=True)
        return copy_file(source, tmp_path / name, unwatched, hashed=True)

    with pytest.raises(FileNotFoundError):
        in_parallel(copy, ["missing", *(f"copy-{number}" for number in range(50))])
    assert all(path.stat().st_size == 3 * CHUNK_BYTES for path in tmp_path.iterdir())
    assert len(in_parallel(copy, ["one-more"])) == 1


def test_a_disk_that_is_too_small_is_told_before_anything_is_copied(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"bytes free, 1152921504606846976 are needed"):
        check_space(tmp_path, 1 << 60)
