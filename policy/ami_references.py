"""Where resources name the AMI of a node by its id."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from policy.manifests import Manifest, Subject, manifests
from policy.resources import Resource
from policy.values import Node

_Path = tuple[str, ...]
_AMI_ID = re.compile(r"ami-[0-9a-f]{8}(?:[0-9a-f]{9})?", re.ASCII)

_FIELDS: Mapping[str, tuple[_Path, ...]] = MappingProxyType(
    {
        "aws:ec2/launchTemplate:LaunchTemplate": (("imageId",),),
        "aws:ec2/launchConfiguration:LaunchConfiguration": (("imageId",),),
        "aws:ec2/instance:Instance": (("ami",),),
        "aws:ec2/spotInstanceRequest:SpotInstanceRequest": (("ami",),),
        "aws-native:ec2:LaunchTemplate": (("launchTemplateData", "imageId"),),
        "aws-native:ec2:Instance": (("imageId",),),
        "eks:index:ManagedNodeGroup": (("amiId",),),
        "eks:index:NodeGroup": (("amiId",),),
        "eks:index:NodeGroupV2": (("amiId",),),
        "eks:index:Cluster": (("nodeAmiId",), ("nodeGroupOptions", "amiId")),
    }
)


@dataclass(frozen=True)
class AmiReference:
    """An AMI id, and where it stands. `is_derived` where it comes from another resource of the stack."""

    id: str
    where: str
    owner: Subject
    is_derived: bool


def ec2_node_classes(resource: Resource) -> Iterator[Manifest]:
    """The EC2NodeClasses of Karpenter in a resource."""
    return (one for one in manifests(resource) if one.is_a("karpenter.k8s.aws", "EC2NodeClass"))


def ami_selector_terms(node_class: Manifest) -> Iterator[Node]:
    """The terms by which an EC2NodeClass chooses its AMI."""
    return node_class.node.at("spec", "amiSelectorTerms").elements()


def ami_references(resource: Resource) -> Iterator[AmiReference]:
    """The AMI ids in a resource."""
    for path in _FIELDS.get(resource.type, ()):
        yield from _reference(resource, resource.props.at(*path), resource)
    for node_class in ec2_node_classes(resource):
        for term in ami_selector_terms(node_class):
            yield from _reference(resource, term.at("id"), node_class)


def _reference(resource: Resource, node: Node, owner: Subject) -> Iterator[AmiReference]:
    text = node.text() or ""
    if _AMI_ID.fullmatch(text):
        # Only a whole property is known to depend on something, so its first key decides.
        derived = bool(resource.dependencies.get(str(node.keys[0])))
        yield AmiReference(text, f"{owner} ({node.path})", owner, derived)
