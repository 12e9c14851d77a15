"""Makes the SDK decode a resource once, and not anew for each policy.

The SDK (1.21) turns the message of a resource into Python values for every policy again. With twenty policies that was
most of the pack's time. Values are shared between policies from here on; no rule changes them.
"""

from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any

import pulumi_policy.policy as sdk
from google.protobuf import json_format, struct_pb2
from pulumi_policy.deserialize import deserialize_properties
from pulumi_policy.proxy import unknown_checking_proxy

# Enough for the resources of any stack in one pass; a larger one is judged as well, only slower.
_RESOURCES_KEPT = 10_000


def decode_once() -> None:
    """From now on the SDK in this process takes a decoded resource from a cache, by the content of its message."""
    # The SDK applies three functions, one to the result of the other, and finds each by its name in this module.
    replacements: dict[str, object] = {
        "json_format": _MessageFormat,
        "deserialize_properties": _deserialize,
        "unknown_checking_proxy": _check_unknown,
    }
    for name, replacement in replacements.items():
        if not hasattr(sdk, name):
            raise ImportError(f"pulumi_policy.policy has no {name} any more: adapt policy/decoding.py")
        setattr(sdk, name, replacement)


class _Decoded(dict[str, Any]):
    """What MessageToDict returns, which knows what the SDK will make of it."""

    @cached_property
    def checked(self) -> Mapping[str, Any]:
        """The values as policies get them: secrets and assets unpacked, unknown values guarded."""
        return unknown_checking_proxy(deserialize_properties(dict(self)))


@lru_cache(_RESOURCES_KEPT)
def _decode(content: bytes) -> _Decoded:
    return _Decoded(json_format.MessageToDict(struct_pb2.Struct.FromString(content)))


class _MessageFormat:
    """Stands for the module google.protobuf.json_format, of which the SDK uses one function."""

    @staticmethod
    def MessageToDict(message: struct_pb2.Struct) -> dict[str, Any]:  # noqa: N802 - the name that the SDK calls
        return _decode(message.SerializeToString(deterministic=True))


def _deserialize(props: dict[str, Any], proxy_secrets: bool = False) -> dict[str, Any]:
    unchanged = isinstance(props, _Decoded) and not proxy_secrets
    return props if unchanged else deserialize_properties(props, proxy_secrets)


def _check_unknown(props: dict[str, Any]) -> Mapping[str, Any]:
    return props.checked if isinstance(props, _Decoded) else unknown_checking_proxy(props)
