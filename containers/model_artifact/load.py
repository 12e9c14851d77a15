"""Loads one published artifact to the pod's disk, or says why not, before the server starts.

Accepts nothing but a complete manifest of exactly the key that the server needs, and files that are as it says.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatch

from containers.model_artifact.acceptance import mismatch
from containers.model_artifact.cache import Publication, published_of_model, wrong_size
from containers.model_artifact.compilation import check_model_argument, compile_model
from containers.model_artifact.download import OTHER_FORMATS
from containers.model_artifact.errors import ArtifactError
from containers.model_artifact.local import Part
from containers.model_artifact.manifest import Manifest, PublishedFile
from containers.model_artifact.program import Job, parser, run
from containers.model_artifact.report import Report
from containers.model_artifact.restore import bring_weights, restore
from neuron.differences import differences


def load(job: Job, report: Report) -> str:
    """Load; what was done, in one line. Damage is no miss: it is told, not compiled around."""
    check_model_argument(job.server_arguments, job.local)
    prefix = job.description.prefix
    _, manifest = Publication(job.root, job.description.key).newest()
    if manifest is None:
        return _miss(job, report)
    problem = mismatch(manifest, job.description) or wrong_size(job.root, manifest.files)
    if problem is not None:
        raise ArtifactError(f"{prefix}: {problem}; publish it again")
    try:
        for part, files in _wanted(job, manifest):
            restore(job, part, files, report)
    except ArtifactError as error:
        raise ArtifactError(f"{prefix}: {error}") from None
    return f"loaded {prefix}"


def _wanted(job: Job, manifest: Manifest) -> Iterator[tuple[Part, Mapping[str, PublishedFile]]]:
    """What the server reads. Where each rank finds its weights among the graphs, the model's own stay in the cache.

    The part is then another than a compiler needs, and says so.
    """
    for name, part in job.local.parts.items():
        files = manifest.part(name)
        if job.description.rank_files and part == job.local.model:
            without = {path: file for path, file in files.items() if not _holds_weights(path)}
            yield replace(part, identity=f"{part.identity} without weights"), without
        else:
            yield part, files


def _holds_weights(path: str) -> bool:
    return any(fnmatch(path, pattern) for pattern in ("*.safetensors", *OTHER_FORMATS))


def _miss(job: Job, report: Report) -> str:
    prefix = job.description.prefix
    found = f"{prefix} is not published; {_nearest(job)}"
    if job.on_miss == "fail":
        raise ArtifactError(found)
    report.say(f"{found}; compiling here")
    bring_weights(job, report)
    compile_model(job.description, job.server_arguments, job.local, report)
    return f"compiled {prefix} here, because it is not published"


def _nearest(job: Job) -> str:
    """How the most similar publication of the model differs from what is wanted."""
    published = [
        (differences(job.description.inputs, manifest.inputs), directory)
        for directory, manifest in published_of_model(job.root)
    ]
    if not published:
        return "nothing of this model is"
    different, directory = min(published, key=lambda entry: (len(entry[0]), entry[1]))
    return f"the nearest that is, {directory.parent.name}/{directory.name}, differs in {'; '.join(different)}"


if __name__ == "__main__":
    options = parser(__doc__)
    options.add_argument("--on-miss", choices=["compile", "fail"], default="fail", help="when nothing is published")
    sys.exit(run("load", options.parse_args(), load))
