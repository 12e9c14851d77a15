"""The pod's own disk: where vLLM finds the model and its compiled graphs, and which of them are complete."""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from containers.model_artifact.copying import Progress, hash_file, in_parallel, new_file, write_all
from containers.model_artifact.description import Description
from containers.model_artifact.manifest import File

# huggingface_hub keeps its notes about unfinished downloads there.
_NOTES = ".cache"


@dataclass(frozen=True)
class Part:
    """A directory whose content is one thing (`identity`), complete when the marker next to it says so."""

    directory: Path
    identity: str

    def files(self) -> dict[str, File] | None:
        """The files, if the part is complete and unchanged in number and size; None if it is not."""
        try:
            marker = json.loads(self._marker.read_bytes())
        except (OSError, ValueError):
            return None
        files = {path: File(**file) for path, file in marker["files"].items()}
        unchanged = {path: file.size for path, file in files.items()} == self.sizes()
        return files if unchanged and marker["identity"] == self.identity else None

    def finish(self, files: Mapping[str, File]) -> None:
        """Say that the part is complete; that survives a loss of power, so it may only be said of files that do."""
        content = {
            "identity": self.identity,
            "files": {path: File(file.size, file.sha256) for path, file in files.items()},
        }
        new = self._marker.with_suffix(".new")
        new.unlink(missing_ok=True)
        with new_file(new) as descriptor:
            write_all(descriptor, json.dumps(content, default=asdict).encode())
        new.replace(self._marker)

    def reopen(self) -> None:
        """The part is no longer complete, and its directory is there; what it holds stays."""
        self._marker.unlink(missing_ok=True)
        self.directory.mkdir(parents=True, exist_ok=True)

    def clear(self) -> None:
        """The part is no longer complete, and its directory is there and empty."""
        self.reopen()
        for entry in self.directory.iterdir():
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()

    def sizes(self) -> dict[str, int]:
        """Bytes of every file, by its path within the part."""
        sizes = {}
        for folder, folders, names in os.walk(self.directory):
            if Path(folder) == self.directory and _NOTES in folders:
                folders.remove(_NOTES)
            for name in names:
                path = Path(folder, name)
                sizes[path.relative_to(self.directory).as_posix()] = path.stat().st_size
        return sizes

    def measure(self, progress: Progress) -> dict[str, File]:
        """Size and hash of every file, each brought down to the medium."""
        sizes = self.sizes()
        digests = in_parallel(lambda path: _flushed_hash(self.directory / path, progress), list(sizes))
        return {path: File(sizes[path], digest) for path, digest in zip(sizes, digests, strict=True)}

    @property
    def _marker(self) -> Path:
        return self.directory.with_name(f"{self.directory.name}.complete.json")


@dataclass(frozen=True)
class Local:
    """A directory of the pod, with a part for the model (weights, tokenizer) and one for its compiled graphs."""

    directory: Path
    model: Part
    artifacts: Part

    @property
    def parts(self) -> dict[str, Part]:
        """Both parts by the name of their directory, as in the manifest's paths."""
        return {part.directory.name: part for part in (self.model, self.artifacts)}


def local_parts(directory: Path, description: Description) -> Local:
    """The parts of one artifact below `directory`."""
    model = Part(directory / "model", f"{description.model}@{description.revision}")
    return Local(directory, model, Part(directory / "artifacts", description.key))


def _flushed_hash(path: Path, progress: Progress) -> str:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return hash_file(path, progress)
