"""A stand-in for Mountpoint for Amazon S3, for the file operations of one Python process.

Python imports this file at its start where it is on PYTHONPATH. It is no file system: it takes the calls of the `os`
module and Python's audit events, so only Python code is bound by it. Below STANDIN_MOUNT it keeps Mountpoint's rules
(its SEMANTICS.md, of 2026): new files only, written in sequence, no append, rename, overwrite, link, or change of mode
and times, deletion only with STANDIN_ALLOW_DELETE, nothing visible before the upload ends. The upload of a process that
was killed ends, too: its kernel closes its files, and Mountpoint takes what it has for the object, half a file. With
STANDIN_KILLED=lost, Mountpoint died along with it (the node did) and there is no object.

STANDIN_S3 is the address of a bucket on an S3 server (moto): then objects go there, and lookups come from there.
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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Short writes are allowed to any file system; they make files of several writes out of small ones.
WRITE_BYTES = 64 * 1024

MOUNT = os.environ.get("STANDIN_MOUNT", "")
UPLOADS = f"{MOUNT}.uploads"
BUCKET = os.environ.get("STANDIN_S3", "")
ALLOW_DELETE = "STANDIN_ALLOW_DELETE" in os.environ
FULL_BELOW, _, FULL_AFTER = os.environ.get("STANDIN_FULL", "").rpartition(":")
KILL_AT = int(os.environ.get("STANDIN_KILL_AT", "0"))
EVENTS = os.environ.get("STANDIN_EVENTS", "")

WRITING = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_TRUNC | os.O_CREAT
EVENTFUL = {"os.rename", "os.remove", "os.mkdir"}
FORBIDDEN = {"os.rename", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown", "os.utime", "os.setxattr"}

AnyPath = str | bytes | os.PathLike[str]

_real: dict[str, Callable[..., Any]] = {name: getattr(os, name) for name in ("open", "write", "fsync", "close", "stat", "pwrite", "lseek")}
_inside = threading.local()
_uploads: dict[int, tuple[str, str]] = {}
_filling: dict[int, str] = {}
_numbers = itertools.count()
_bytes_left = [int(FULL_AFTER or 0)]


def is_mounted(path: object) -> bool:
    """Whether a path, or what an audit event gives for one, lies below the mount."""
    return isinstance(path, str | bytes | os.PathLike) and os.fsdecode(path).startswith(f"{MOUNT}/")


@contextlib.contextmanager
def mountpoint() -> Iterator[None]:
    """What happens in here is done by Mountpoint, not by the program."""
    _inside.mountpoint = True
    try:
        yield
    finally:
        _inside.mountpoint = False


def refuse(number: int, path: object) -> OSError:
    return OSError(number, os.strerror(number), os.fsdecode(path) if not isinstance(path, int) else path)


def event() -> None:
    """One more write; the last one, if it is to be."""
    if not EVENTS:
        return
    counter = _real["open"](EVENTS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    _real["write"](counter, b".")
    count = os.fstat(counter).st_size
    _real["close"](counter)
    if count == KILL_AT:
        os.killpg(os.getpgrp(), signal.SIGKILL)


def audit(name: str, arguments: tuple[Any, ...]) -> None:
    if getattr(_inside, "mountpoint", False):
        return
    if name in EVENTFUL and os.fsdecode(arguments[0]).startswith(os.path.dirname(MOUNT)):
        event()
    if name == "open" and is_mounted(arguments[0]):
        if (arguments[2] or 0) & WRITING:
            raise refuse(errno.EPERM, arguments[0])
        refresh()
    elif name in FORBIDDEN and any(map(is_mounted, arguments)):
        raise refuse(errno.ENOSYS, next(filter(is_mounted, arguments)))
    elif name in ("os.remove", "os.rmdir") and is_mounted(arguments[0]):
        if not ALLOW_DELETE or name == "os.rmdir":
            raise refuse(errno.EPERM, arguments[0])
        forget(os.fsdecode(arguments[0]))
    elif name in ("os.listdir", "os.scandir") and is_mounted(arguments[0]):
        refresh()


def open_(path: AnyPath, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
    if not (flags & WRITING):
        return _real["open"](path, flags, mode, dir_fd=dir_fd)
    event()
    if not is_mounted(path):
        descriptor = _real["open"](path, flags, mode, dir_fd=dir_fd)
        if FULL_BELOW and os.fsdecode(path).startswith(FULL_BELOW):
            _filling[descriptor] = os.fsdecode(path)
        return descriptor
    refresh()
    target = os.fsdecode(path)
    if os.path.exists(target) or being_written(target):
        raise refuse(errno.EEXIST if flags & os.O_EXCL else errno.EPERM, target)
    if not flags & os.O_CREAT or not os.path.isdir(os.path.dirname(target)):
        raise refuse(errno.ENOENT, target)
    staged = f"{UPLOADS}/{os.path.relpath(target, MOUNT)}.upload.{os.getpid()}.{next(_numbers)}"
    with mountpoint():
        os.makedirs(os.path.dirname(staged), exist_ok=True)
    descriptor = _real["open"](staged, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
    _uploads[descriptor] = (staged, target)
    if FULL_BELOW and target.startswith(FULL_BELOW):
        _filling[descriptor] = target
    return descriptor


def write(descriptor: int, content: bytes | memoryview) -> int:
    event()
    if descriptor in _uploads and _uploads[descriptor][0] == "":
        raise refuse(errno.EPERM, _uploads[descriptor][1])
    part = memoryview(content)[:WRITE_BYTES]
    if descriptor in _filling:
        if len(part) > _bytes_left[0]:
            raise refuse(errno.ENOSPC, _filling[descriptor])
        _bytes_left[0] -= len(part)
    return _real["write"](descriptor, part)


def fsync(descriptor: int) -> None:
    event()
    _real["fsync"](descriptor)
    finish(descriptor)


def close(descriptor: int) -> None:
    _real["close"](descriptor)
    _filling.pop(descriptor, None)
    finish(descriptor)
    _uploads.pop(descriptor, None)


def pwrite(descriptor: int, content: bytes, offset: int) -> int:
    if descriptor in _uploads:
        raise refuse(errno.EINVAL, descriptor)
    return _real["pwrite"](descriptor, content, offset)


def lseek(descriptor: int, position: int, how: int) -> int:
    if descriptor in _uploads:
        raise refuse(errno.EINVAL, descriptor)
    return _real["lseek"](descriptor, position, how)


def stat(path: AnyPath | int, *arguments: Any, **options: Any) -> os.stat_result:
    if is_mounted(path) and not getattr(_inside, "mountpoint", False):
        refresh()
    return _real["stat"](path, *arguments, **options)


def being_written(target: str) -> bool:
    """By a process that lives; nobody may open it, but its name is taken."""
    return any(Path(UPLOADS).glob(f"{os.path.relpath(target, MOUNT)}.upload.*"))


def finish(descriptor: int) -> None:
    staged, target = _uploads.get(descriptor, ("", ""))
    if staged:
        _uploads[descriptor] = ("", target)
        complete(staged, target)


def complete(staged: str, target: str) -> None:
    """The object appears, whole, at once; if there is one by now (another node's), the later upload wins."""
    with mountpoint():
        if BUCKET:
            put(target, Path(staged).read_bytes())
        os.replace(staged, target)


def end_uploads_of_the_dead() -> None:
    """Their files were closed for them."""
    for staged in sorted(Path(UPLOADS).rglob("*.upload.*")):
        path, _, writer = str(staged.relative_to(UPLOADS)).rpartition(".upload.")
        pid, _, _ = writer.partition(".")
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), 0)
            continue
        with contextlib.suppress(FileNotFoundError):
            if os.environ.get("STANDIN_KILLED") == "lost" or staged.stat().st_size == 0:
                staged.unlink()
            else:
                complete(str(staged), f"{MOUNT}/{path}")


def put(target: str, content: bytes) -> None:
    request(target, "PUT", content)


def forget(target: str) -> None:
    if BUCKET:
        request(target, "DELETE")


def request(target: str, method: str, content: bytes | None = None) -> bytes:
    # Slow to import, and of use only here.
    import urllib.parse
    import urllib.request

    key = urllib.parse.quote(os.path.relpath(target, MOUNT)) if target else "?list-type=2"
    call = urllib.request.Request(f"{BUCKET}/{key}", data=content, method=method)  # noqa: S310 - loopback
    with urllib.request.urlopen(call, timeout=20) as answer:  # noqa: S310
        return answer.read()


_listed: dict[str, str] = {}


def refresh() -> None:
    """With a bucket behind: bring what changed there to the mount's directory, which is only its mirror."""
    if not BUCKET or getattr(_inside, "mountpoint", False):
        return
    with mountpoint():
        page = request("", "GET").decode()
        objects = dict(re.findall(r"<Key>(.*?)</Key>.*?<ETag>(.*?)</ETag>", page, re.DOTALL))
        for key, tag in objects.items():
            target = f"{MOUNT}/{key}"
            if _listed.get(key) != tag:
                os.makedirs(os.path.dirname(target), exist_ok=True)
                new = f"{UPLOADS}.{os.getpid()}"
                Path(new).write_bytes(request(target, "GET"))
                os.replace(new, target)
                _listed[key] = tag


if MOUNT:
    os.makedirs(UPLOADS, exist_ok=True)
    end_uploads_of_the_dead()
    sys.addaudithook(audit)
if MOUNT or EVENTS or FULL_BELOW:
    os.open, os.write, os.fsync, os.close, os.stat = open_, write, fsync, close, stat
    os.pwrite, os.lseek = pwrite, lseek
