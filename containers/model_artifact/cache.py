"""The published side: the only module that writes to the cache. It creates files and reads them, nothing else."""

import itertools
import random
import re
from collections.abc import Mapping
from pathlib import Path

from containers.model_artifact.copying import (
    Progress,
    copy_file,
    hash_file,
    in_parallel,
    new_file,
    same_content,
    write_all,
)
from containers.model_artifact.errors import ArtifactError
from containers.model_artifact.manifest import File, Manifest, PublishedFile, from_json, to_json

# The directory of the weights, next to those of the keys, none of which can be called so.
WEIGHTS = "weights"

_MANIFEST = re.compile(r"manifest-(\d+)\.json")

# A sample has every file below this size, and a quarter of the larger ones, other ones each time.
_SAMPLE_ALL_BELOW_BYTES = 64 * 1024 * 1024
_SAMPLE_SHARE = 4


class Publication:
    """One directory of the cache, `name`, below the directory of a model and revision, `root`."""

    def __init__(self, root: Path, name: str) -> None:
        """Nothing is read yet."""
        self._root = root
        self._name = name

    def newest(self) -> tuple[int, Manifest | None]:
        """The highest complete manifest and its number; 0 and None without one. Half-written ones do not count."""
        for number in sorted(self._manifest_numbers(), reverse=True):
            manifest = self._read(number)
            if manifest is not None:
                return number, manifest
        return 0, None

    def prepare(self) -> None:
        """Make the directories; on an object store they appear with their first file."""
        (self._root / self._name / "files").mkdir(parents=True, exist_ok=True)

    def add(self, source: Path, file: File, progress: Progress, *, read_back: bool) -> PublishedFile:
        """Put one file into the cache, unless its content is there already, and check that it arrived.

        `read_back` reads from the cache what was copied; otherwise what was sent is what is checked.
        """
        if file.size == 0:
            return PublishedFile(0, file.sha256, place="")
        for number in itertools.count(1):
            place = f"{self._name}/files/{file.sha256}-{number}"
            target = self._root / place
            if _has_content(target, file, progress) or _copied(source, target, file, progress, read_back=read_back):
                break
        return PublishedFile(file.size, file.sha256, place)

    def complete(self, manifest: Manifest, after: int) -> Manifest:
        """Write the manifest, which completes the publication; the other's if another publisher was first.

        `after` is the number of the manifest that this one replaces, 0 for none.
        """
        for number in itertools.count(after + 1):
            try:
                with new_file(self._manifest_path(number)) as descriptor:
                    write_all(descriptor, to_json(manifest))
            except FileExistsError:
                other = self._read(number)
                if other is not None:
                    return other
            else:
                break
        return manifest

    def _manifest_path(self, number: int) -> Path:
        return self._root / self._name / f"manifest-{number}.json"

    def _manifest_numbers(self) -> list[int]:
        try:
            names = [path.name for path in (self._root / self._name).iterdir()]
        except FileNotFoundError:
            return []
        return [int(match[1]) for match in map(_MANIFEST.fullmatch, names) if match]

    def _read(self, number: int) -> Manifest | None:
        try:
            return from_json(self._manifest_path(number).read_bytes())
        except OSError:
            # Mountpoint lets nobody read what is being written.
            return None


def damage(root: Path, files: Mapping[str, PublishedFile], *, all_hashes: bool, progress: Progress) -> str | None:
    """What is wrong with published files, in one phrase, or None: sizes of all, then hashes of all or of a sample."""
    problem = wrong_size(root, files)
    if problem is not None:
        return problem
    chosen = sorted(to_hash(files, all_hashes=all_hashes))
    digests = in_parallel(lambda path: hash_file(root / files[path].place, progress), chosen)
    wrong = [path for path, digest in zip(chosen, digests, strict=True) if digest != files[path].sha256]
    return wrong_content(wrong[0]) if wrong else None


def wrong_size(root: Path, files: Mapping[str, PublishedFile]) -> str | None:
    """The first file that is missing or has another size, in one phrase, or None."""
    stored = {path: file for path, file in files.items() if file.size}
    sizes = in_parallel(lambda file: _size(root / file.place), list(stored.values()))
    for (path, file), size in zip(stored.items(), sizes, strict=True):
        if size is None:
            return f"{path} is missing"
        if size != file.size:
            return f"{path} has {size} bytes, published were {file.size}"
    return None


def wrong_content(path: str) -> str:
    """The phrase for a file whose hash is another."""
    return f"the content of {path} is not what was published"


def to_hash(files: Mapping[str, PublishedFile], *, all_hashes: bool) -> set[str]:
    """The files whose hashes are to be checked."""
    stored = {path for path, file in files.items() if file.size}
    large = sorted(path for path in stored if files[path].size >= _SAMPLE_ALL_BELOW_BYTES)
    if all_hashes or not large:
        return stored
    checked = -(-len(large) // _SAMPLE_SHARE)
    return stored - set(random.SystemRandom().sample(large, len(large) - checked))


def published_of_model(root: Path) -> list[tuple[Path, Manifest]]:
    """Every complete publication of the same model, at any revision, with its directory."""
    model = root.name.partition("@")[0]
    keys = [path for path in sorted(root.parent.glob(f"{model}@*/*")) if path.name != WEIGHTS]
    manifests = [(path, Publication(path.parent, path.name).newest()[1]) for path in keys if path.is_dir()]
    return [(path, manifest) for path, manifest in manifests if manifest is not None]


def _copied(source: Path, target: Path, file: File, progress: Progress, *, read_back: bool) -> bool:
    """False if something is there: half-written, damaged, or being written by another publisher."""
    try:
        digest = copy_file(source, target, progress, hashed=True)
    except FileExistsError:
        return False
    arrived = not read_back or same_content(target, source, progress)
    if digest != file.sha256 or not arrived:
        raise ArtifactError(f"{source} did not arrive whole in the cache, or changed meanwhile; publish again")
    return True


def _has_content(path: Path, file: File, progress: Progress) -> bool:
    try:
        return path.stat().st_size == file.size and hash_file(path, progress) == file.sha256
    except FileNotFoundError:
        return False
    except PermissionError:
        # Mountpoint lets nobody read what is being written.
        return False


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None
