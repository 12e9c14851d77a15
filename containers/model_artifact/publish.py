"""Publishes one artifact: downloads the weights, compiles, copies both into the cache, and completes the manifest.

Run it again after any end: what is complete, here or in the cache, is not done again.
"""

import sys
import time
from collections.abc import Mapping

from containers.model_artifact.acceptance import mismatch
from containers.model_artifact.cache import WEIGHTS, Publication, damage, wrong_size
from containers.model_artifact.compilation import check_model_argument, compile_model, tools
from containers.model_artifact.copying import in_parallel
from containers.model_artifact.errors import ArtifactError
from containers.model_artifact.local import Part
from containers.model_artifact.manifest import File, Manifest, PublishedFile
from containers.model_artifact.program import Job, parser, run
from containers.model_artifact.report import Report
from containers.model_artifact.restore import bring_weights


def publish(job: Job, report: Report) -> str:
    """Publish, unless it is published; what was done, in one line."""
    prefix = job.description.prefix
    publication = Publication(job.root, job.description.key)
    number, manifest = publication.newest()
    if manifest is not None:
        problem = _problem(job, manifest, report)
        if problem is None:
            return f"{prefix} is published already"
        report.say(f"{prefix}: {problem}; publishing it again")

    check_model_argument(job.server_arguments, job.local)
    weights = bring_weights(job, report)
    artifacts = compile_model(job.description, job.server_arguments, job.local, report)

    newer, winner = publication.newest()
    if newer == number:
        files = {
            **_publish_weights(job, weights, report),
            **_add(job, publication, job.local.artifacts, artifacts, report),
        }
        ours = _manifest(job.description.key, job.description.inputs, files)
        winner = _complete(job, publication, ours, number)
        if winner is ours:
            return f"published {prefix}"
    return _second(job, winner)


def _problem(job: Job, manifest: Manifest, report: Report) -> str | None:
    with report.stage("verify") as stage:
        return mismatch(manifest, job.description) or damage(
            job.root, manifest.files, all_hashes=job.all_hashes, progress=stage.add
        )


def _publish_weights(job: Job, weights: Mapping[str, File], report: Report) -> dict[str, PublishedFile]:
    """The weights are a publication of their own: the next configuration of this revision finds them."""
    publication = Publication(job.root, WEIGHTS)
    number, known = publication.newest()
    files = _add(job, publication, job.local.model, weights, report)
    if known is None or known.files != files:
        inputs = {"model": job.description.model, "revision": job.description.revision}
        _complete(job, publication, _manifest(WEIGHTS, inputs, files), number)
    return files


def _add(
    job: Job, publication: Publication, part: Part, files: Mapping[str, File], report: Report
) -> dict[str, PublishedFile]:
    """Copy the files of a part and check that they arrived."""
    publication.prepare()
    name = part.directory.name
    # Of files with the same content, such as every module's compiler flags, one is copied.
    sources = {file: part.directory / path for path, file in files.items()}
    with report.stage(f"copy and verify {name}") as stage:
        published = in_parallel(
            lambda file: publication.add(sources[file], file, stage.add, read_back=job.all_hashes), list(sources)
        )
    by_content = dict(zip(sources, published, strict=True))
    return {f"{name}/{path}": by_content[file] for path, file in files.items()}


def _complete(job: Job, publication: Publication, manifest: Manifest, after: int) -> Manifest:
    problem = wrong_size(job.root, manifest.files)
    if problem is not None:
        raise ArtifactError(f"the cache lost what was just copied: {problem}; publish again")
    return publication.complete(manifest, after)


def _manifest(key: str, inputs: Mapping[str, object], files: Mapping[str, PublishedFile]) -> Manifest:
    return Manifest(key, inputs, tools(), time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), files)


def _second(job: Job, winner: Manifest | None) -> str:
    """Another publisher was first; that is as good, if it published the same."""
    problem = mismatch(winner, job.description) if winner else "its manifest vanished"
    if problem is not None:
        raise ArtifactError(f"another publisher was first at {job.description.prefix}, but {problem}")
    return f"another publisher was first: {job.description.prefix} is published"


if __name__ == "__main__":
    sys.exit(run("publish", parser(__doc__).parse_args(), publish))
