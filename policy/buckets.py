"""S3 buckets of a stack, and what is stated about them in other resources."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from policy.resources import Resource, Stack
from policy.values import Node

CLASSIC_TYPES = frozenset({"aws:s3/bucket:Bucket", "aws:s3/bucketV2:BucketV2"})
NATIVE_TYPE = "aws-native:s3:Bucket"


def buckets(stack: Stack) -> Iterator[Resource]:
    """The general purpose buckets; directory buckets can never be public."""
    return (one for one in stack.resources if one.type in CLASSIC_TYPES or one.type == NATIVE_TYPE)


@dataclass(frozen=True)
class Companions:
    """The resources of some types that say something about one bucket each."""

    resources: tuple[Resource, ...]

    def of(self, bucket: Resource) -> Iterator[Resource]:
        """Those about this bucket."""
        return (one for one in self.resources if self._is_about(one, bucket))

    def unplaced(self) -> bool:
        """Whether one is about a bucket that only the update will tell."""
        return any(not one.dependencies.get("bucket") and one.props.at("bucket").is_unknown() for one in self.resources)

    def _is_about(self, companion: Resource, bucket: Resource) -> bool:
        if any(one.urn == bucket.urn for one in companion.dependencies.get("bucket", ())):
            return True
        name = companion.props.at("bucket").quiet().text()
        own = (bucket.props.at(key).quiet().text() for key in ("bucket", "bucketName", "id"))
        return name is not None and name in own


def companions(stack: Stack, types: Iterable[str]) -> Companions:
    """The companions of these types."""
    wanted = frozenset(types)
    return Companions(tuple(one for one in stack.resources if one.type in wanted))


def policy_statements(policy: Node) -> Iterator[Mapping[str, object]]:
    """The statements of a policy that is given as JSON text or as an object; none if it is not known or not readable.

    Objects are read by `Node`, which copes with unknown values below.
    """
    text = policy.text()
    if text is not None:
        try:
            document = json.loads(text)
        except ValueError:
            return
        policy = Node(document, policy.keys, policy.unseen)
    statement = policy.at("Statement")
    for node in statement.elements() if any(True for _ in statement.elements()) else [statement]:
        fields = {key: _plain(below) for key, below in node.fields()}
        if fields:
            yield fields


def _plain(node: Node) -> object:
    """The value in plain dicts and lists; None for what is not known."""
    fields = {key: _plain(below) for key, below in node.fields()}
    elements = [_plain(below) for below in node.elements()]
    return fields or elements or node.scalar()
