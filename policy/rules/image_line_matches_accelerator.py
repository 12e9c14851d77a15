"""image-line-matches-accelerator: the vLLM Neuron plugin runs on Trainium2 and newer only."""

from collections.abc import Iterable, Iterator

from pulumi_policy import Severity

from neuron.images import PLUGIN_MINIMUM_VERSION, lacks_plugin_support
from policy.neuron_images import NeuronImage, images_in_resource, images_in_stack
from policy.resources import Resource, Stack
from policy.rule import Rule, Violation

_MINIMUM = ".".join(map(str, PLUGIN_MINIMUM_VERSION))


def judge_resource(resource: Resource) -> Iterator[Violation]:
    """Judge the pods that name their instance family."""
    return _judge(images_in_resource(resource))


def judge_stack(stack: Stack) -> Iterator[Violation]:
    """Judge the pods whose instance family only a pool of the stack says."""
    return _judge(images_in_stack(stack))


def _judge(images: Iterable[NeuronImage]) -> Iterator[Violation]:
    for image in images:
        families = sorted(filter(lacks_plugin_support, image.families))
        if image.version >= PLUGIN_MINIMUM_VERSION and families:
            yield image.violation(
                f"image {image.node.text()} (vLLM {_MINIMUM} or newer) may run on {', '.join(families)}",
                "choose trn2 or newer, or the 0.13 line (SDK 2.28) for trn1 and inf2",
            )


RULE = Rule(
    id="image-line-matches-accelerator",
    title="The image runs on the accelerator that it is given",
    severity=Severity.HIGH,
    why=(
        f"vLLM for Neuron {_MINIMUM} and newer is the plugin line, which has no code for the NeuronCore-v2 of "
        "Inferentia2 and Trainium1: the server ends while it starts."
    ),
    remediation=(
        "For inf2 and trn1 take the last line that AWS states for them without contradiction: 0.13 with SDK 2.28.",
        "For the plugin line choose trn2 or newer, by node selector, node affinity or pool.",
    ),
    judge_resource=judge_resource,
    judge_stack=judge_stack,
)
