"""Compares how publishing and loading move bytes with a plain copy: ratios of one run, same tree, same fsync.

    python -m tools.bench_artifact --directory /disk/to/measure

A ratio of 1 is as fast as the plain copy, which goes file after file and hashes nothing. "read back" is publishing with
`--hashes all`, which reads the cache again after each file. Memory is the peak of a process that copies one large file.
"""

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from containers.model_artifact.cache import Publication
from containers.model_artifact.copying import copy_file, in_parallel
from containers.model_artifact.local import Part
from containers.model_artifact.manifest import File, PublishedFile

GIB = 1024**3
MIB = 1024**2
ROUNDS = 7

# Shares of the tree as in a published model: shards of weights, graphs, small files.
_TREE = {"model-1.safetensors": 45, "model-2.safetensors": 45, **{f"module-{n}/model.neff": 1 for n in range(10)}}
_SMALL = {f"module-{n}/compile_flags.json": 359 for n in range(40)}


def make_tree(directory: Path, size_bytes: int) -> None:
    """Files with content that does not compress."""
    block = os.urandom(MIB)
    sizes = {path: share * size_bytes // 100 for path, share in _TREE.items()} | _SMALL
    for path, size in sizes.items():
        target = directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            file.write(path.encode())
            for start in range(len(path), size, MIB):
                file.write(block[: size - start])


def plain_copy(source: Path, target: Path) -> None:
    """What `cp -r` does, and fsync."""
    for path in source.rglob("*"):
        if path.is_file():
            copied = target / path.relative_to(source)
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copied)
            descriptor = os.open(copied, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)


def publish(source: Path, target: Path, files: Mapping[str, File], *, read_back: bool) -> dict[str, PublishedFile]:
    """The copying of the publish program."""
    publication = Publication(target, "key")
    publication.prepare()
    add = lambda path: publication.add(source / path, files[path], _unwatched, read_back=read_back)  # noqa: E731
    return dict(zip(files, in_parallel(add, list(files)), strict=True))


def load(source: Path, target: Path, files: Mapping[str, PublishedFile]) -> None:
    """The copying of the load program."""
    for path in files:
        (target / path).parent.mkdir(parents=True, exist_ok=True)
    bring = lambda path: copy_file(source / files[path].place, target / path, _unwatched, hashed=True)  # noqa: E731
    digests = in_parallel(bring, list(files))
    if digests != [file.sha256 for file in files.values()]:
        raise SystemExit("the disk does not return what was written to it")


def median_seconds(work: Mapping[str, Callable[[Path], object]], directory: Path) -> dict[str, float]:
    """Each kind of work once a round, in another order each time: a disk slows down, and makes up for it later."""
    seconds: dict[str, list[float]] = {name: [] for name in work}
    order = random.Random(ROUNDS)  # noqa: S311 - an order, no secret
    for _ in range(ROUNDS):
        for name in order.sample(list(work), len(work)):
            with tempfile.TemporaryDirectory(dir=directory) as target:
                os.sync()
                started = time.monotonic()
                work[name](Path(target))
                seconds[name].append(time.monotonic() - started)
    return {name: statistics.median(times) for name, times in seconds.items()}


def peak_memory_mib(directory: Path, size_bytes: int) -> float:
    """The most memory that a process holds which copies and hashes one file of that size, and reads it back."""
    with tempfile.TemporaryDirectory(dir=directory) as place:
        source = Path(place, "source")
        source.touch()
        os.truncate(source, size_bytes)
        program = (
            "import sys; from pathlib import Path;"
            "from containers.model_artifact.copying import copy_file, same_content;"
            "source, target = map(Path, sys.argv[1:]);"
            "copy_file(source, target, lambda count: None, hashed=True);"
            "assert same_content(target, source, lambda count: None);"
            "print(Path('/proc/self/status').read_text().partition('VmHWM:')[2].split()[0])"
        )
        command = [sys.executable, "-c", program, str(source), str(Path(place, "target"))]
        return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout) / 1024


def main() -> None:
    """Print one line a measurement."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()))
    options.add_argument("--tree-gib", type=float, default=1)
    options.add_argument("--large-gib", type=float, default=10)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.directory) as place:
        source, published = Path(place, "source"), Path(place, "published")
        make_tree(source, int(chosen.tree_gib * GIB))
        files = Part(source, "bench").measure(_unwatched)
        stored = publish(source, published, files, read_back=False)
        seconds = median_seconds(
            {
                "plain copy": lambda target: plain_copy(source, target),
                "publish": lambda target: publish(source, target, files, read_back=False),
                "publish, read back": lambda target: publish(source, target, files, read_back=True),
                "load": lambda target: load(published, target, stored),
            },
            chosen.directory,
        )
    for name, median in seconds.items():
        speed = chosen.tree_gib * 1024 / median
        print(f"{name}: {speed:.0f} MiB/s, {seconds['plain copy'] / median:.2f} of the plain copy")
    print(
        f"memory, {chosen.large_gib} GiB file: {peak_memory_mib(chosen.directory, int(chosen.large_gib * GIB)):.0f} MiB"
    )


def _unwatched(_count: int) -> None:
    """Progress that nobody follows."""


if __name__ == "__main__":
    main()
