"""A stand-in for Mountpoint for Amazon S3, for the file operations of one Python process.

Python imports this file at its start where it is on PYTHONPATH. It is no file system: it takes calls of the `os` module
and Python's audit events, so only Python code is bound by it. Below STANDIN_MOUNT it keeps Mountpoint's rules (its
SEMANTICS.md, of 2026): new files only, written in sequence, no append, rename, overwrite, link, deletion, or change of
mode and times, nothing visible before the upload ends. The upload of a process that was killed ends, too: the kernel
closes its files, and Mountpoint takes what it has for the object, half a file. With STANDIN_KILLED=lost, Mountpoint
died along with it (the node did) and there is no object.

STANDIN_S3 is the address of a bucket on an S3 server: then objects go there, and lookups come from there.
STANDIN_FULL=<directory>:<bytes> is a disk that is full after so many more bytes.
STANDIN_KILL_AT=<n> kills the process group at its n-th write or change of a name, counted in the file STANDIN_EVENTS.
"""

import contextlib
import errno
import itertools
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Short writes are allowed to any file system; they make several writes of a small file.
WRITE_BYTES = 64 * 1024

MOUNT = Path(os.environ.get("STANDIN_MOUNT") or "/nowhere")
UPLOADS = MOUNT.with_name(f"{MOUNT.name}.uploads")
BUCKET = os.environ.get("STANDIN_S3", "")
FULL_BELOW, _, FULL_AFTER = os.environ.get("STANDIN_FULL", "").rpartition(":")
KILL_AT = int(os.environ.get("STANDIN_KILL_AT", "0"))
EVENTS = os.environ.get("STANDIN_EVENTS", "")

WRITING = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_TRUNC | os.O_CREAT
COUNTED = {"os.rename", "os.remove", "os.mkdir"}
UNSUPPORTED = {"os.rename", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown", "os.utime", "os.setxattr"}
NOT_ALLOWED = {"os.remove", "os.rmdir"}
LOOKUPS = {"os.listdir", "os.scandir"}

AnyPath = str | bytes | os.PathLike[str]

real_open, real_write, real_fsync, real_close = os.open, os.write, os.fsync, os.close
real_stat, real_pwrite, real_lseek = os.stat, os.pwrite, os.lseek

_thread = threading.local()
_numbers = itertools.count()
# By descriptor: where the upload's bytes are until it ends (None: it has), and the path that it is for.
_uploads: dict[int, tuple[Path | None, Path]] = {}
# By descriptor: the path of a file on the disk that fills up.
_filling: dict[int, str] = {}
_bytes_left = [int(FULL_AFTER or 0)]


def is_mounted(path: object) -> bool:
    """Whether a path, or what an audit event gives for one, lies below the mount."""
    return isinstance(path, str | bytes | os.PathLike) and text(path).startswith(f"{MOUNT}/")


def text(path: Any) -> str:
    return os.fsdecode(path)


@contextlib.contextmanager
def mountpoint() -> Iterator[None]:
    """What happens in here is done by Mountpoint, not by the program."""
    _thread.is_mountpoint = True
    try:
        yield
    finally:
        _thread.is_mountpoint = False


def refuse(number: int, path: object) -> OSError:
    return OSError(number, os.strerror(number), path if isinstance(path, int) else text(path))


def count() -> None:
    """One more write; the last one, if it is to be."""
    if not EVENTS:
        return
    counter = real_open(EVENTS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    real_write(counter, b".")
    counted = os.fstat(counter).st_size
    real_close(counter)
    # Not ==: another thread may have written between this one's write and its look at the size.
    if 0 < KILL_AT <= counted:
        os.killpg(os.getpgrp(), signal.SIGKILL)


def audit(event: str, arguments: tuple[Any, ...]) -> None:
    """Every change of a name, and every open that does not come through `open_file`."""
    if getattr(_thread, "is_mountpoint", False):
        return
    if event in COUNTED and text(arguments[0]).startswith(str(MOUNT.parent)):
        count()
    mounted = [path for path in arguments if is_mounted(path)]
    if not mounted:
        return
    if event in UNSUPPORTED:
        raise refuse(errno.ENOSYS, mounted[0])
    if event in NOT_ALLOWED or (event == "open" and (arguments[2] or 0) & WRITING):
        raise refuse(errno.EPERM, mounted[0])
    if event == "open" or event in LOOKUPS:
        refresh()


def open_file(path: AnyPath, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
    if not flags & WRITING:
        return real_open(path, flags, mode, dir_fd=dir_fd)
    count()
    if is_mounted(path):
        descriptor = begin_upload(Path(text(path)), flags)
    else:
        descriptor = real_open(path, flags, mode, dir_fd=dir_fd)
    if FULL_BELOW and text(path).startswith(FULL_BELOW):
        _filling[descriptor] = text(path)
    return descriptor


def begin_upload(target: Path, flags: int) -> int:
    place = UPLOADS / target.relative_to(MOUNT)
    # A file that is being written can be opened by nobody, but its name is taken.
    if target.exists() or any(place.parent.glob(f"{place.name}.upload.*")):
        raise refuse(errno.EEXIST if flags & os.O_EXCL else errno.EPERM, target)
    if not flags & os.O_CREAT or not target.parent.is_dir():
        raise refuse(errno.ENOENT, target)
    staged = place.with_name(f"{place.name}.upload.{os.getpid()}.{next(_numbers)}")
    with mountpoint():
        staged.parent.mkdir(parents=True, exist_ok=True)
    descriptor = real_open(staged, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
    _uploads[descriptor] = (staged, target)
    return descriptor


def write(descriptor: int, content: bytes | memoryview) -> int:
    count()
    if descriptor in _uploads and _uploads[descriptor][0] is None:
        raise refuse(errno.EPERM, _uploads[descriptor][1])
    part = memoryview(content)[:WRITE_BYTES]
    if descriptor in _filling:
        if len(part) > _bytes_left[0]:
            raise refuse(errno.ENOSPC, _filling[descriptor])
        _bytes_left[0] -= len(part)
    return real_write(descriptor, part)


def fsync(descriptor: int) -> None:
    count()
    real_fsync(descriptor)
    end_upload(descriptor)


def close(descriptor: int) -> None:
    _filling.pop(descriptor, None)
    end_upload(descriptor)
    _uploads.pop(descriptor, None)
    # Last: another thread may get the same number at once.
    real_close(descriptor)


def pwrite(descriptor: int, content: bytes, offset: int) -> int:
    if descriptor in _uploads:
        raise refuse(errno.EINVAL, descriptor)
    return real_pwrite(descriptor, content, offset)


def lseek(descriptor: int, position: int, how: int) -> int:
    if descriptor in _uploads:
        raise refuse(errno.EINVAL, descriptor)
    return real_lseek(descriptor, position, how)


def stat(path: AnyPath | int, **options: Any) -> os.stat_result:
    if is_mounted(path):
        refresh()
    return real_stat(path, **options)


def end_upload(descriptor: int) -> None:
    staged, target = _uploads.get(descriptor, (None, MOUNT))
    if staged is not None:
        _uploads[descriptor] = (None, target)
        complete(staged, target)


def complete(staged: Path, target: Path) -> None:
    """The object appears, whole, at once; if there is one by now (another node's), the later upload wins."""
    with mountpoint():
        if BUCKET:
            request(f"/{target.relative_to(MOUNT)}", "PUT", staged.read_bytes())
        staged.replace(target)


def end_uploads_of_the_dead() -> None:
    """Their files were closed for them. Of an empty file, Mountpoint makes no object at once."""
    for staged in sorted(UPLOADS.rglob("*.upload.*")):
        name, _, writer = staged.name.rpartition(".upload.")
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(writer.partition(".")[0]), 0)
            continue
        with contextlib.suppress(FileNotFoundError):
            if os.environ.get("STANDIN_KILLED") == "lost" or staged.stat().st_size == 0:
                staged.unlink()
            else:
                complete(staged, MOUNT / staged.relative_to(UPLOADS).with_name(name))


# The server looks at who asks, not at the signature.
HEADERS = {
    "Authorization": "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request",
    "Content-Type": "application/octet-stream",
}

# Mountpoint would ask each time; this is slower to see other nodes, which is harder on the programs.
LISTING_SECONDS = 0.1
_last_listing = [0.0]
_listing = threading.Lock()
_listed: dict[str, str] = {}


def request(path: str, method: str, content: bytes | None = None) -> bytes:
    # Slow to import, and of use only with a bucket.
    from urllib.parse import quote
    from urllib.request import Request, urlopen

    call = Request(BUCKET + quote(path, safe="/?=&"), content, HEADERS, method=method)  # noqa: S310 - loopback
    with urlopen(call, timeout=20) as answer:  # noqa: S310
        return bytes(answer.read())


def refresh() -> None:
    """With a bucket behind: bring what is new there to the mount's directory, which is only its mirror."""
    if not BUCKET or getattr(_thread, "is_mountpoint", False):
        return
    with _listing:
        if time.monotonic() < _last_listing[0] + LISTING_SECONDS:
            return
        _last_listing[0] = time.monotonic()
        with mountpoint():
            page = request("/?list-type=2", "GET").decode()
            for key, tag in re.findall(r"<Key>(.*?)</Key>.*?<ETag>(.*?)</ETag>", page, re.DOTALL):
                if _listed.get(key) != tag:
                    (MOUNT / key).parent.mkdir(parents=True, exist_ok=True)
                    new = UPLOADS / f"download.{os.getpid()}"
                    new.write_bytes(request(f"/{key}", "GET"))
                    new.replace(MOUNT / key)
                    _listed[key] = tag


if "STANDIN_MOUNT" in os.environ:
    UPLOADS.mkdir(exist_ok=True)
    end_uploads_of_the_dead()
    sys.addaudithook(audit)
    replacements: list[Callable[..., Any]] = [write, fsync, close, pwrite, lseek, stat]
    for replacement in replacements:
        setattr(os, replacement.__name__, replacement)
    setattr(os, "open", open_file)  # noqa: B010 - its type is the real one's
