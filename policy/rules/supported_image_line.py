"""supported-image-line (advisory): the image's line is in support on the accelerator that it is given."""

from collections.abc import Iterable, Iterator

from pulumi_policy import EnforcementLevel, Severity

from neuron.images import support_doubt
from policy.neuron_images import NeuronImage, images_in_resource, images_in_stack
from policy.resources import Resource, Stack
from policy.rule import Rule, Violation


def judge_resource(resource: Resource) -> Iterator[Violation]:
    """Judge every image of vLLM for Neuron, on the families that its pod names."""
    return _judge(images_in_resource(resource))


def judge_stack(stack: Stack) -> Iterator[Violation]:
    """Judge the pods whose instance family only a pool says; what is true on any family was said before."""
    return _judge(image for image in images_in_stack(stack) if support_doubt(image.version, ()) is None)


def _judge(images: Iterable[NeuronImage]) -> Iterator[Violation]:
    for image in images:
        doubt = support_doubt(image.version, image.families)
        if doubt:
            yield image.violation(
                doubt, "take the 0.13 line (SDK 2.28) for trn1 and inf2, the plugin line (0.24) for trn2"
            )


RULE = Rule(
    id="supported-image-line",
    title="The image line is in support",
    severity=Severity.LOW,
    why=(
        "the V0 engine ended with SDK 2.27 and gets no fixes, and for 0.16 on trn1 and inf2 the release notes of SDK "
        "2.29 contradict the container index: models failed to compile there."
    ),
    remediation=(
        "Move to a line that is in support for the accelerator; compiled artifacts are made anew for it.",
        "To stay knowingly, set this rule's enforcementLevel to disabled for the stack.",
    ),
    judge_resource=judge_resource,
    judge_stack=judge_stack,
    level=EnforcementLevel.ADVISORY,
)
