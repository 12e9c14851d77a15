"""What the installed pulumi-aws SDK knows of a resource type: read from its classes, so that nothing is typed twice."""

import importlib
import inspect
import keyword
import sys
import typing
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import metadata
from types import NoneType, UnionType

import pulumi
from pulumi import _types as sdk

from stand_ins.aws.errors import StandInError
from stand_ins.aws.values import Value, child_path, is_secret, is_unknown

VERSION = metadata.version("pulumi-aws")
# Of the engine, not of the SDK: which properties have defaults of the provider.
DEFAULTS_KEY = "__defaults"


@dataclass(frozen=True)
class Resource:
    """A resource type: its inputs, and its outputs as Python types by wire name."""

    inputs: type
    outputs: Mapping[str, object]
    always_present: frozenset[str]


@dataclass(frozen=True)
class Failure:
    """What is wrong with the input at a property path."""

    path: str
    reason: str


@cache
def resource(token: str) -> Resource | None:
    """The schema of a type such as aws:ec2/vpc:Vpc; None for one that the SDK does not have."""
    resource_class = _class(token)
    if resource_class is None:
        return None
    module, name = sys.modules[resource_class.__module__], resource_class.__name__
    # InitArgs where a part of another resource has the name already.
    inputs: type = getattr(module, f"{name}InitArgs", None) or getattr(module, f"{name}Args")
    names = sdk.resource_py_to_pulumi_names(resource_class)
    getters = {names[name]: getter for name, getter in vars(resource_class).items() if name in names}
    present = {name for name, getter in getters.items() if not _is_optional(getter)}
    return Resource(inputs, sdk.resource_types(resource_class), frozenset(present))


def known_resource(token: str) -> Resource:
    """The schema of a type that the SDK has: those that passed the check."""
    known = resource(token)
    if known is None:
        raise StandInError(f"pulumi-aws {VERSION} has no resource type {token}")
    return known


@cache
def properties(inputs: type) -> Mapping[str, object]:
    """Wire names of an Args class's properties, with their types."""
    return sdk.input_type_types(inputs)


def failures(token: str, inputs: Mapping[str, Value]) -> list[Failure]:
    """Where the inputs of a resource are not what the SDK has: unknown, missing or of a wrong form."""
    schema = known_resource(token)
    given = {name: value for name, value in inputs.items() if name != DEFAULTS_KEY}
    return list(_object_failures(given, schema.inputs, ""))


def _class(token: str) -> type | None:
    """aws:eks/nodeGroup:NodeGroup is pulumi_aws.eks.NodeGroup; aws:index/... are pulumi_aws itself."""
    _, path, name = token.split(":")
    module = path.partition("/")[0]
    package = "pulumi_aws" if module == "index" else f"pulumi_aws.{module}{'_' if keyword.iskeyword(module) else ''}"
    try:
        found = getattr(importlib.import_module(package), name, None)
    except ModuleNotFoundError:
        return None
    return found if inspect.isclass(found) and issubclass(found, pulumi.CustomResource) else None


def _is_optional(getter: property) -> bool:
    output = inspect.get_annotations(getter.fget, eval_str=False)["return"] if getter.fget else None
    return any(NoneType in typing.get_args(argument) for argument in typing.get_args(output))


def required(inputs: type) -> set[str]:
    names = sdk.input_type_py_to_pulumi_names(inputs)
    parameters = inspect.signature(inputs).parameters.values()
    return {names[parameter.name] for parameter in parameters if parameter.default is parameter.empty}


def _failures(value: Value, expected: object, path: str) -> typing.Iterator[Failure]:
    if is_secret(value):
        assert isinstance(value, dict)
        value = value["value"]
    if value is None or is_unknown(value):
        return
    expected = _without_output(expected)
    form = typing.get_origin(expected) or expected
    if inspect.isclass(form) and sdk.is_input_type(form):
        yield from _object_failures(value, form, path)
    elif form is Sequence:
        yield from _list_failures(value, typing.get_args(expected)[0], path)
    elif form is Mapping:
        yield from _map_failures(value, typing.get_args(expected)[1], path)
    elif form in (str, int, float, bool) and isinstance(value, dict | list):
        yield Failure(path, f"must be one value, not {'an object' if isinstance(value, dict) else 'a list'}")


def _object_failures(value: Value, inputs: type, path: str) -> typing.Iterator[Failure]:
    if not isinstance(value, dict):
        yield Failure(path, "must be an object")
        return
    types = properties(inputs)
    for name, item in value.items():
        if name in types:
            yield from _failures(item, types[name], child_path(path, name))
        else:
            yield Failure(child_path(path, name), f"pulumi-aws {VERSION} does not know it{_nearest(name, types)}")
    for name in sorted(required(inputs)):
        if value.get(name) is None:
            yield Failure(child_path(path, name), "is required and missing")


def _list_failures(value: Value, expected: object, path: str) -> typing.Iterator[Failure]:
    if not isinstance(value, list):
        yield Failure(path, "must be a list")
        return
    for index, item in enumerate(value):
        yield from _failures(item, expected, child_path(path, index))


def _map_failures(value: Value, expected: object, path: str) -> typing.Iterator[Failure]:
    if not isinstance(value, dict):
        yield Failure(path, "must be a map")
        return
    for key, item in value.items():
        yield from _failures(item, expected, child_path(path, key))


def _without_output(expected: object) -> object:
    """The one type that an input may have; object where the SDK allows several, such as a policy as text or object."""
    if typing.get_origin(expected) not in (typing.Union, UnionType):
        return expected
    plain = [kind for kind in typing.get_args(expected) if not _is_deferred(kind)]
    return plain[0] if len(plain) == 1 else object


def _is_deferred(kind: object) -> bool:
    return kind is NoneType or typing.get_origin(kind) in (Awaitable, pulumi.Output)


def _nearest(name: str, known: Mapping[str, object]) -> str:
    matches = get_close_matches(name, known, 1)
    return f"; did you mean {matches[0]}?" if matches else ""
