"""Copies and hashes files: streamed, so that memory does not grow with them, and in parallel."""

import hashlib
import itertools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

# Small enough to be hashed and written out of the processor's cache.
CHUNK_BYTES = 1024 * 1024

# Files at once. hashlib, reads and writes all let other threads run; an object store rewards requests in flight.
WORKERS = 8

# Chunks of a file in memory: so far may its hashing lag behind its writing. In lockstep each would wait for the other's
# turn on the processor, a thousand times in a gibibyte.
BUFFERS = 8

# A file below this is hashed on the way: another thread would cost more than that.
_HASH_ASIDE_BYTES = 256 * 1024

Item = TypeVar("Item")
Result = TypeVar("Result")
Progress = Callable[[int], None]

# Set when one file of the work at hand failed: the others need not go on. There is one such work at a time.
_failed = threading.Event()


def in_parallel(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """The results of `work` on each item, in order; the first error stops the others and is raised."""
    _failed.clear()
    with ThreadPoolExecutor(WORKERS) as executor:
        futures = [executor.submit(work, item) for item in items]
        try:
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
            errors = [error for error in (future.exception() for future in done) if error is not None]
            if errors:
                raise errors[0]
        except BaseException:
            _failed.set()
            executor.shutdown(cancel_futures=True)
            raise
        return [future.result() for future in futures]


def hash_file(path: Path, progress: Progress) -> str:
    """The SHA-256 of a file's content; `progress` is told of every byte."""
    digest = hashlib.sha256()
    source = os.open(path, os.O_RDONLY)
    try:
        for chunk in _chunks(source, progress):
            digest.update(chunk)
    finally:
        os.close(source)
    return digest.hexdigest()


def copy_file(source: Path, target: Path, progress: Progress, *, hashed: bool) -> str | None:
    """Copy into a new file, down to the medium; the SHA-256 of what was copied, None if it is not to be hashed.

    FileExistsError if there is a file already. What an error leaves of the target is deleted where that is allowed.
    """
    digest = hashlib.sha256() if hashed else None
    readable = os.open(source, os.O_RDONLY)
    try:
        with _hashing_aside(digest, os.fstat(readable).st_size) as add, new_file(target) as written:
            for chunk in _chunks(readable, progress, buffers=BUFFERS):
                add(chunk)
                write_all(written, chunk)
    finally:
        os.close(readable)
    return digest.hexdigest() if digest else None


def same_content(copied: Path, source: Path, progress: Progress) -> bool:
    """Whether a copy, read again, has the bytes of its source; `progress` is told of every byte.

    Of a source that was hashed while it was copied, this says what hashing the copy would, in a fraction of its time.
    """
    descriptor = os.open(source, os.O_RDONLY)
    copy = os.open(copied, os.O_RDONLY)
    try:
        buffer, position = bytearray(CHUNK_BYTES), 0
        for chunk in _chunks(copy, progress):
            expected = buffer if len(chunk) == CHUNK_BYTES else bytearray(len(chunk))
            # A bytearray compares as memory; two views would compare item by item.
            if os.preadv(descriptor, [expected], position) != len(chunk) or expected != chunk:
                return False
            position += len(chunk)
        return position == os.fstat(descriptor).st_size
    finally:
        os.close(copy)
        os.close(descriptor)


@contextmanager
def _hashing_aside(digest: "hashlib._Hash | None", size: int) -> Iterator[Callable[[memoryview], None]]:
    """What takes the chunks of a file of that size; all are hashed when the context ends.

    A chunk may be overwritten when BUFFERS - 1 more were taken.
    """
    if digest is None:
        yield lambda _chunk: None
        return
    if size < _HASH_ASIDE_BYTES:
        yield digest.update
        return
    pending: deque[Future[None]] = deque()

    def add(chunk: memoryview) -> None:
        if len(pending) == BUFFERS - 1:
            pending.popleft().result()
        pending.append(aside.submit(digest.update, chunk))

    with ThreadPoolExecutor(1) as aside:
        yield add


@contextmanager
def new_file(path: Path) -> Iterator[int]:
    """The descriptor of a file that did not exist, for writing once from start to end; durable when the context ends.

    On Mountpoint the flush is what makes the object, so it tells of a failure that a close might not.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        yield descriptor
        os.fsync(descriptor)
    except BaseException:
        os.close(descriptor)
        _delete_where_allowed(path)
        raise
    os.close(descriptor)


def write_all(descriptor: int, content: "bytes | memoryview") -> None:
    """Write every byte; a write may take fewer than it is given."""
    remaining = memoryview(content)
    while remaining:
        remaining = remaining[os.write(descriptor, remaining) :]


def _chunks(source: int, progress: Progress, buffers: int = 1) -> Iterator[memoryview]:
    """The file, piece by piece; a piece is valid until `buffers` more are asked for, and written by the next."""
    size = min(CHUNK_BYTES, os.fstat(source).st_size + 1)
    for buffer in itertools.cycle([memoryview(bytearray(size)) for _ in range(buffers)]):
        count = os.readv(source, [buffer])
        if not count:
            return
        if _failed.is_set():
            raise InterruptedError("stopped, because another file failed")
        yield buffer[:count]
        progress(count)


def _delete_where_allowed(path: Path) -> None:
    """Mountpoint deletes only if told at mount; what stays is half-written, and known as such by its content."""
    try:
        path.unlink()
    except OSError:
        return
