"""Brings published files to the pod's disk."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from containers.model_artifact.cache import WEIGHTS, Publication, to_hash, wrong_content, wrong_size
from containers.model_artifact.copying import Progress, copy_file, in_parallel, new_file
from containers.model_artifact.download import download
from containers.model_artifact.errors import ArtifactError
from containers.model_artifact.local import Part
from containers.model_artifact.manifest import File, PublishedFile
from containers.model_artifact.program import Job
from containers.model_artifact.report import Report


def restore(job: Job, part: Part, files: Mapping[str, PublishedFile], report: Report) -> None:
    """Make `part` hold just these files, checked while they are copied; ArtifactError if one is not as published."""
    if part.files() == _contents(files):
        report.say(f"{part.directory.name}: complete already")
        return
    part.clear()
    check_space(part.directory, sum(file.size for file in files.values()))
    for path in files:
        (part.directory / path).parent.mkdir(parents=True, exist_ok=True)
    hashed = to_hash(files, all_hashes=job.all_hashes)

    with report.stage(f"load {part.directory.name}") as stage:
        in_parallel(
            lambda path: _bring(job.root, part.directory, path, files[path], stage.add, hashed=path in hashed),
            list(files),
        )
    part.finish(files)


def bring_weights(job: Job, report: Report) -> Mapping[str, File]:
    """The model's files on the pod's disk: there already, or from the cache, or from Hugging Face."""
    part = job.local.model
    _, manifest = Publication(job.root, WEIGHTS).newest()
    if manifest is not None and part.files() is None:
        files = manifest.part(part.directory.name)
        try:
            problem = wrong_size(job.root, files)
            if problem is not None:
                raise ArtifactError(problem)
            restore(job, part, files, report)
        except ArtifactError as error:
            report.say(f"the weights in the cache are damaged ({error}); downloading them again")
            part.clear()
    return download(job.description, part, report)


def _bring(root: Path, directory: Path, path: str, file: PublishedFile, progress: Progress, *, hashed: bool) -> None:
    target = directory / path
    if file.size == 0:
        with new_file(target):
            return
    digest = copy_file(root / file.place, target, progress, hashed=hashed)
    if target.stat().st_size != file.size or digest not in (None, file.sha256):
        raise ArtifactError(wrong_content(path))


def _contents(files: Mapping[str, PublishedFile]) -> dict[str, File]:
    return {path: File(file.size, file.sha256) for path, file in files.items()}


def check_space(directory: Path, needed: int) -> None:
    """ArtifactError if the disk of `directory` has not so many bytes free."""
    free = shutil.disk_usage(directory).free
    if needed > free:
        raise ArtifactError(f"{directory} has {free} bytes free, {needed} are needed; raise the volume's size limit")
