"""Downloads the weights at the pinned revision, and checks that all of them came."""

import os
from collections.abc import Mapping
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from containers.model_artifact.description import Description
from containers.model_artifact.errors import ArtifactError
from containers.model_artifact.local import Part
from containers.model_artifact.manifest import File
from containers.model_artifact.report import Report

# The same weights again, for other programs, in repositories that have them as safetensors too.
OTHER_FORMATS = ("*.bin", "*.pt", "*.pth", "*.gguf", "*.h5", "*.msgpack", "*.onnx", "*.ot", "original/*", "onnx/*")


def download(description: Description, part: Part, report: Report) -> Mapping[str, File]:
    """The files of the model in `part`, complete; what is there already is not downloaded again."""
    complete = part.files()
    if complete is not None:
        report.say("download: complete already")
        return complete
    part.reopen()
    with report.stage("download", measure=lambda: _bytes_below(part.directory)):
        expected = _fetch(description, part)
    with report.stage("hash weights") as stage:
        files = part.measure(stage.add)
    _check(expected, files, description)
    part.finish(files)
    return files


def _fetch(description: Description, part: Part) -> dict[str, File | int]:
    """Bring the repository's files into `part`; their sizes, with hashes where Hugging Face knows those."""
    # Read when huggingface_hub is imported: the pod's default is to ask it nothing.
    os.environ["HF_HUB_OFFLINE"] = "0"
    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
    import huggingface_hub

    name, revision = description.model, description.revision
    try:
        repository = huggingface_hub.HfApi().model_info(name, revision=revision, files_metadata=True)
        ignored = OTHER_FORMATS if any(s.rfilename.endswith(".safetensors") for s in repository.siblings) else ()
        huggingface_hub.snapshot_download(
            name, revision=revision, local_dir=part.directory, ignore_patterns=list(ignored)
        )
    # The hub's errors derive from those of whichever HTTP library it was built on.
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ArtifactError(_explain(error, description, huggingface_hub.utils)) from None
    wanted = [s for s in repository.siblings if not any(fnmatch(s.rfilename, pattern) for pattern in ignored)]
    return {s.rfilename: File(s.size, s.lfs["sha256"]) if s.lfs else s.size for s in wanted}


def _check(expected: Mapping[str, File | int], files: Mapping[str, File], description: Description) -> None:
    """The hub's client may take a half-filled directory for a whole one when it cannot reach the hub."""
    for path, want in expected.items():
        found = files.get(path)
        if found is None or want not in (found, found.size):
            raise ArtifactError(
                f"{path} of {description.model} is not complete after its download; run again to resume"
            )


def _bytes_below(directory: Path) -> int:
    """Unfinished files included, which come and go."""
    total = 0
    for path in directory.rglob("*"):
        with suppress(FileNotFoundError):
            total += path.stat().st_size if path.is_file() else 0
    return total


def _explain(error: Exception, description: Description, kinds: Any) -> str:
    """One line about an error of the hub's client."""
    what = f"{description.model} at revision {description.revision}"
    status = getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(error, kinds.GatedRepoError):
        return f"{what} is gated: accept its terms and give a token that may read it (HF_TOKEN)"
    if isinstance(error, kinds.RevisionNotFoundError):
        return f"{what} does not exist; pin a commit of the model's repository"
    if status in (401, 403):
        return f"Hugging Face refuses the token for {what}: it is missing, expired or may not read it (HF_TOKEN)"
    if isinstance(error, kinds.RepositoryNotFoundError):
        return f"{what} does not exist, or the token may not read it (HF_TOKEN)"
    first_line = str(error).partition("\n")[0]
    return f"downloading {what} failed: {type(error).__name__}: {first_line}"
