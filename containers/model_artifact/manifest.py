"""The manifest: what a complete publication consists of. Without one there is no publication."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath

FORMAT = 1


@dataclass(frozen=True)
class File:
    """The content of a file: its size in bytes and its SHA-256, hexadecimal."""

    size: int
    sha256: str


@dataclass(frozen=True)
class PublishedFile(File):
    """A file in the cache, below the directory of its model and revision; an empty file needs no place there.

    Mountpoint completes the upload of an empty file at some time after it is closed, so none is uploaded.
    """

    place: str


@dataclass(frozen=True)
class Manifest:
    """A publication. `files` are by their local path (model/... or artifacts/...), `tools` are versions by package."""

    key: str
    inputs: Mapping[str, object]
    tools: Mapping[str, str]
    created: str
    files: Mapping[str, PublishedFile]

    def part(self, name: str) -> dict[str, PublishedFile]:
        """The files below one local directory, by their path within it."""
        start = f"{name}/"
        return {path[len(start) :]: file for path, file in self.files.items() if path.startswith(start)}


def to_json(manifest: Manifest) -> bytes:
    """The manifest as it is stored; it ends with its only closing brace at the left, so a part of it is no JSON."""
    return (json.dumps({"format": FORMAT, **asdict(manifest)}, sort_keys=True, indent=1) + "\n").encode()


def from_json(content: bytes) -> Manifest | None:
    """The manifest in `content`, None if that is not a whole one."""
    try:
        values = json.loads(content)
        files = {path: PublishedFile(**file) for path, file in values["files"].items()}
        manifest = Manifest(values["key"], values["inputs"], values["tools"], values["created"], files)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    places = [*files, *(file.place for file in files.values())]
    return manifest if values.get("format") == FORMAT and all(map(_stays_below, places)) else None


def _stays_below(path: str) -> bool:
    return not path.startswith("/") and ".." not in PurePosixPath(path).parts
