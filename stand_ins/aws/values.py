"""Property values as Pulumi's protocol has them: JSON, with two special forms, one for unknowns and one for secrets."""

from collections.abc import Mapping

from google.protobuf import json_format, struct_pb2
from pulumi.runtime import rpc

UNKNOWN = rpc.UNKNOWN

Value = object
Properties = dict[str, Value]


def from_struct(struct: struct_pb2.Struct) -> Properties:
    """The properties of a message; numbers are float, as in the message."""
    properties: Properties = json_format.MessageToDict(struct)
    return properties


def to_struct(properties: Mapping[str, Value]) -> struct_pb2.Struct:
    """The properties for a message."""
    return json_format.ParseDict(dict(properties), struct_pb2.Struct())


def is_unknown(value: Value) -> bool:
    """Whether the value is known only after the update."""
    return value == UNKNOWN


def is_secret(value: Value) -> bool:
    """Whether the value, itself, is marked secret."""
    return isinstance(value, dict) and value.get(rpc._special_sig_key) == rpc._special_secret_sig


def reveal(value: Value) -> Value:
    """The value without the marks of secrets, at any depth."""
    if is_secret(value):
        assert isinstance(value, dict)
        return reveal(value["value"])
    if isinstance(value, dict):
        return {key: reveal(item) for key, item in value.items()}
    if isinstance(value, list):
        return [reveal(item) for item in value]
    return value


def contains_unknown(value: Value) -> bool:
    """Whether the value or a part of it is unknown."""
    if isinstance(value, dict):
        return any(map(contains_unknown, value.values()))
    if isinstance(value, list):
        return any(map(contains_unknown, value))
    return is_unknown(value)


def child_path(path: str, key: str | int) -> str:
    """The property path of a part, as Pulumi writes it: a.b, a[0], a["b.c"]."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    if not key.replace("_", "").replace("-", "").isalnum():
        return f'{path}["{key}"]'
    return f"{path}.{key}" if path else key
