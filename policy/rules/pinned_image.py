"""pinned-image: every container names its image by a tag or digest that does not move."""

from collections.abc import Iterator

from pulumi_policy import Severity

from neuron.images import parse_reference
from policy.resources import Resource
from policy.rule import Rule, Violation
from policy.workloads import workloads

_MOVING_TAGS = frozenset({"latest", "nightly", "main", "dev", "stable"})
# Variants such as latest-cuda or py3-latest move with it.
_LATEST = "latest"


def judge(resource: Resource) -> Iterator[Violation]:
    """One violation for each container whose image may change under the same name."""
    for workload in workloads(resource):
        for container in workload.containers():
            image = container.node.at("image")
            problem = None if container.is_ephemeral else _problem(image.text() or "")
            if problem:
                yield Violation(
                    what=problem,
                    where=workload.place(container, image),
                    fix="name a release tag, or the digest (repository@sha256:...)",
                    subject=workload.manifest,
                )


def _problem(text: str) -> str | None:
    reference = parse_reference(text)
    if not text or reference.digest is not None:
        return None
    if reference.tag is None:
        return f"image {text} has no tag, which means latest"
    if reference.tag in _MOVING_TAGS or _LATEST in reference.tag.split("-"):
        return f"image {text} has the tag {reference.tag}, which moves"
    return None


RULE = Rule(
    id="pinned-image",
    title="Images are named by a tag or digest that does not move",
    severity=Severity.MEDIUM,
    why=(
        "the image decides compiler and runtime: compiled artifacts of another SDK do not load, so that a restart "
        "compiles again (4 min 9 s instead of 41 s), and driver 2.29 refuses runtimes older than 2.33."
    ),
    remediation=(
        "Replace the moving tag by the release that was tested, for Neuron <vllm>-neuronx-<python>-sdk<version>-<os>.",
        "Or name the digest, which no registry can move.",
    ),
    judge_resource=judge,
)
