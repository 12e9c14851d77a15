"""Makes the SDK decode a resource once, and not anew for each policy, into values that are read fast.

The SDK (1.21) turns the message of a resource into Python values for every policy again. With twenty policies that was
most of the pack's time. Values are shared between policies from here on; no rule changes them. Nor does the SDK guard
them by proxies any more, whose every access is slow: policy/values.py knows which values are unknown.
"""

from functools import cached_property, lru_cache
from typing import Any

import pulumi_policy.policy as sdk
from google.protobuf import json_format
from google.protobuf.struct_pb2 import Struct
from pulumi_policy.deserialize import deserialize_properties

from policy.values import mark_unknown

# Enough for the resources of any stack in one pass; a larger one is judged as well, only slower.
_RESOURCES_KEPT = 10_000


def decode_once() -> None:
    """From now on the SDK in this process takes a decoded resource from a cache, by the content of its message."""
    # The SDK applies three functions, one to the result of the other, and finds each by its name in this module.
    replacements: dict[str, object] = {
        "json_format": _MessageFormat(),
        "deserialize_properties": _deserialize,
        "unknown_checking_proxy": _mark_unknown,
    }
    for name, replacement in replacements.items():
        if not hasattr(sdk, name):
            raise ImportError(f"pulumi_policy.policy has no {name} any more: adapt policy/decoding.py")
        setattr(sdk, name, replacement)


class _Decoded(dict[str, Any]):
    """What MessageToDict returns, which knows what the SDK will make of it."""

    @cached_property
    def marked(self) -> dict[str, Any]:
        """The values as policies get them: secrets and assets unpacked, unknown values marked."""
        marked: dict[str, Any] = mark_unknown(deserialize_properties(dict(self)))
        return marked


@lru_cache(_RESOURCES_KEPT)
def _decode(content: bytes) -> _Decoded:
    return _Decoded(json_format.MessageToDict(Struct.FromString(content)))


class _MessageFormat:
    """Stands for the module google.protobuf.json_format, of which the SDK uses one function."""

    def __init__(self) -> None:
        # The message is kept with what was made of it, so that no other message can get its id.
        self._by_id: dict[int, tuple[Struct, _Decoded]] = {}

    def MessageToDict(self, message: Struct) -> dict[str, Any]:  # noqa: N802 - the name that the SDK calls
        # One request passes by all policies: only the first of them has to look at its content.
        _, decoded = self._by_id.get(id(message), (None, None))
        if decoded is None:
            if len(self._by_id) >= _RESOURCES_KEPT:
                self._by_id.clear()
            decoded = _decode(message.SerializeToString(deterministic=True))
            self._by_id[id(message)] = message, decoded
        return decoded


def _deserialize(props: dict[str, Any], proxy_secrets: bool = False) -> dict[str, Any]:
    unchanged = isinstance(props, _Decoded) and not proxy_secrets
    return props if unchanged else deserialize_properties(props, proxy_secrets)


def _mark_unknown(props: dict[str, Any]) -> dict[str, Any]:
    marked: dict[str, Any] = props.marked if isinstance(props, _Decoded) else mark_unknown(props)
    return marked
