"""The engine's resources as the rules see them: one at a time with its inputs, or the whole stack with its outputs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pulumi_policy import PolicyResource, ResourceValidationArgs, StackValidationArgs

from policy.config import stack_config
from policy.values import Node


@dataclass(frozen=True)
class Resource:
    """One resource. `dependencies` maps a property to the resources it was made from; only a stack knows them."""

    type: str
    name: str
    urn: str
    props: Node
    ignore_changes: tuple[str, ...] = ()
    dependencies: Mapping[str, tuple["Resource", ...]] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.type} {self.name}"


@dataclass(frozen=True)
class Stack:
    """All resources of a stack.

    `config` is the rule's configuration, `own_config` the stack's: the keys of its project, without the project's name,
    and values as text, objects as JSON. These may be secrets in clear.
    """

    resources: tuple[Resource, ...]
    config: Mapping[str, Any] = field(default_factory=dict)
    own_config: Mapping[str, str] = field(default_factory=dict, repr=False)


def from_resource_args(args: ResourceValidationArgs) -> Resource:
    """The resource that a resource policy is asked about."""
    return Resource(
        type=args.resource_type,
        name=args.name,
        urn=args.urn,
        props=_root(args.props),
        ignore_changes=tuple(args.opts.ignore_changes),
        config=args.get_config(),
    )


def from_stack_args(args: StackValidationArgs) -> Stack:
    """The stack that a stack policy is asked about."""
    plain = {resource.urn: _without_dependencies(resource) for resource in args.resources}
    resources = tuple(_with_dependencies(one, plain) for one in args.resources)
    return Stack(resources, args.get_config(), stack_config())


def _root(props: Mapping[str, Any]) -> Node:
    # Through the SDK's proxies, which are no dict, every property would look absent, and every rule might pass.
    if not isinstance(props, dict):
        raise TypeError(
            "properties that the SDK decoded itself: call policy.decoding.decode_once before the pack starts"
        )
    return Node(props)


def _without_dependencies(resource: PolicyResource) -> Resource:
    return Resource(
        type=resource.resource_type,
        name=resource.name,
        urn=resource.urn,
        props=_root(resource.props),
        ignore_changes=tuple(resource.opts.ignore_changes),
    )


def _with_dependencies(resource: PolicyResource, plain: Mapping[str, Resource]) -> Resource:
    one = plain[resource.urn]
    if not resource.property_dependencies:
        return one
    return Resource(
        type=one.type,
        name=one.name,
        urn=one.urn,
        props=one.props,
        ignore_changes=one.ignore_changes,
        dependencies={key: _known(dependencies, plain) for key, dependencies in resource.property_dependencies.items()},
    )


def _known(dependencies: Iterable[PolicyResource], plain: Mapping[str, Resource]) -> tuple[Resource, ...]:
    return tuple(plain[one.urn] for one in dependencies if one.urn in plain)
