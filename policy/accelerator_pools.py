"""The Karpenter pools that are meant for accelerators."""

import re
from collections.abc import Iterator

from policy.manifests import Manifest, manifests
from policy.node_pools import LABEL_OWNERS
from policy.resources import Resource
from policy.values import Node

# EC2's names: inf2, trn1, g5, gr6, p5en; the category is the letters before the generation.
_ACCELERATOR_CATEGORIES = frozenset({"inf", "trn", "g", "gr", "p", "dl"})
_CATEGORY = re.compile(r"[a-z]+")
_VALUE_LABELS = frozenset(
    {
        "node.kubernetes.io/instance-type",
        "beta.kubernetes.io/instance-type",
        *(f"{owner}/instance-{part}" for owner in LABEL_OWNERS for part in ("family", "category")),
    }
)
# Labels that only nodes with accelerators have.
_PRESENCE_LABELS = tuple(f"{owner}/instance-{kind}-" for owner in LABEL_OWNERS for kind in ("accelerator", "gpu"))
_TAINTS = re.compile(r"aws\.amazon\.com/neuron.*|nvidia\.com/gpu.*|amd\.com/gpu")


def accelerator_pools(resource: Resource) -> Iterator[Manifest]:
    """The pools whose requirements or taints name an accelerator; one that may start anything is none of them."""
    for manifest in manifests(resource):
        if manifest.is_a("karpenter.sh", "NodePool") and not manifest.is_patch and _is_for_accelerators(manifest):
            yield manifest


def _is_for_accelerators(manifest: Manifest) -> bool:
    spec = manifest.node.at("spec", "template", "spec")
    requirements = any(_names_accelerator(one) for one in spec.at("requirements").elements())
    return requirements or any(
        _TAINTS.fullmatch(taint.at("key").text() or "") for taint in spec.at("taints").elements()
    )


def _names_accelerator(requirement: Node) -> bool:
    key, operator = requirement.at("key").text() or "", requirement.at("operator").text()
    if key.startswith(_PRESENCE_LABELS):
        return operator in ("In", "Exists", "Gt", "Gte")
    if key not in _VALUE_LABELS or operator != "In":
        return False
    categories = (_CATEGORY.match(node.text() or "") for node in requirement.at("values").elements())
    return any(match is not None and match[0] in _ACCELERATOR_CATEGORIES for match in categories)
