"""Kubernetes objects in resources: their kind, by properties or by type token, and the members of Lists."""

from collections.abc import Iterator
from dataclasses import dataclass

from policy.resources import Resource
from policy.values import Node

_TYPE_PREFIX = "kubernetes:"
_PATCH = "Patch"
_LIST = "List"
_DEFAULT_NAMESPACE = "default"

# Namespace, kind and name: what a reference inside Kubernetes points at.
ObjectKey = tuple[str, str, str]


@dataclass(frozen=True)
class Manifest:
    """One Kubernetes object. `group` is "" for the core API, as in Kubernetes.

    `is_patch` is True where the resource owns only some fields of an object that something else made: what is missing
    there may be set elsewhere.
    """

    group: str
    kind: str
    node: Node
    resource: Resource
    is_patch: bool = False

    @property
    def name(self) -> str:
        """What references call the object; the Pulumi name where Pulumi or the API server will choose one.

        While that is not known yet, no reference leads to the object.
        """
        return self._identity("name", self.resource.name)

    @property
    def namespace(self) -> str:
        """The object's namespace. While it is not known yet, no other object is in it."""
        return self._identity("namespace", _DEFAULT_NAMESPACE)

    @property
    def urn(self) -> str:
        """The URN of the resource that the object is in."""
        return self.resource.urn

    @property
    def key(self) -> ObjectKey:
        """What references to the object are compared with."""
        return self.namespace, self.kind, self.name

    def __str__(self) -> str:
        metadata = self.node.at("metadata").quiet()
        namespace = metadata.at("namespace").text() or _DEFAULT_NAMESPACE
        return f"{self.kind} {namespace}/{metadata.at('name').text() or self.resource.name}"

    def _identity(self, field: str, default: str) -> str:
        node = self.node.at("metadata", field)
        return f"unknown {field} of {self.urn}" if node.is_unknown() else node.text() or default

    def states(self, *path: str) -> bool:
        """Whether the program states that field, which the API server may also have filled in.

        After an update the engine tells only what the object is; server-side apply keeps whose fields are whose. What
        came through a subresource is a controller's.
        """
        entries = self.node.at("metadata", "managedFields").quiet().elements()
        applied = [
            entry.at("fieldsV1")
            for entry in entries
            if entry.at("operation").text() == "Apply" and entry.at("subresource").is_absent()
        ]
        if not applied:
            return self.node.at(*path).is_present()
        return any(not fields.at(*(f"f:{step}" for step in path)).is_absent() for fields in applied)

    def is_a(self, group: str, kind: str) -> bool:
        """Whether the object is of that API group and kind, in whatever version."""
        return (self.group, self.kind) == (group, kind)


# What a finding is about: an object of Kubernetes, or a resource that is none.
Subject = Manifest | Resource


def manifests(resource: Resource) -> Iterator[Manifest]:
    """The objects in a resource: one, the members of a List, or none if it is no Kubernetes object."""
    return _manifests(resource, resource.props)


def _manifests(resource: Resource, node: Node) -> Iterator[Manifest]:
    if not resource.type.startswith(_TYPE_PREFIX):
        return
    _, api_version, token_kind = [*resource.type.split(":", 2), "", ""][:3]
    is_patch = token_kind.endswith(_PATCH)
    kind = token_kind.removesuffix(_PATCH)
    # Most tokens tell group and kind, and spare reading them; CustomResource and the like do not.
    if "/" in api_version and not kind.endswith(_LIST):
        yield Manifest(_group(api_version), kind, node, resource, is_patch)
        return
    yield from _expand(node, (api_version, kind), resource, is_patch)


def _expand(node: Node, fallback: tuple[str, str], resource: Resource, is_patch: bool) -> Iterator[Manifest]:
    api_version = node.at("apiVersion").text() or fallback[0]
    kind = node.at("kind").text() or fallback[1]
    if kind.endswith(_LIST):
        for item in node.at("items").elements():
            yield from _expand(item, (api_version, kind.removesuffix(_LIST)), resource, is_patch)
        return
    yield Manifest(_group(api_version), kind, node, resource, is_patch)


def _group(api_version: str) -> str:
    """The group of `apps/v1` is apps; that of `v1`, which type tokens spell `core/v1`, is the core group."""
    group, slash, _ = api_version.partition("/")
    return "" if not slash or group == "core" else group
