"""Property values as a comment may show them: what is secret, or looks it, is masked; what is unknown says so."""

import re
from collections.abc import Mapping
from typing import Any

from pulumi.runtime import rpc

from policy.tokens import decoded, holds_token
from policy.values import UNKNOWN

SECRET = "[secret]"  # noqa: S105 - what stands in for one
_ASSET = "[asset]"
# How the engine writes values that are no plain JSON: an object with this key, and what kind of object it is.
_SIGNATURE = "4dabf18193072939515e22adb298388d"
_SECRET_SIGNATURE = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 - no secret
# The name of a variable or key whose text is a secret: HF_TOKEN, adminPassword, aws_secret_access_key.
_SECRET_NAME = re.compile(r"(token|password|passwd|secret|(api|access|private)[_-]?key)$", re.IGNORECASE)
_CREDENTIALS = re.compile(
    r"hf_[A-Za-z0-9]{8,}|\b(AKIA|ASIA)[A-Z0-9]{16}\b|\bgh[pousr]_[A-Za-z0-9]{20,}|\bpul-[0-9a-f]{40}\b"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    re.DOTALL,
)
# Of a Kubernetes Secret; Pulumi makes them secrets of its own, but not in a list or a patch.
_SECRET_FIELDS = ("data", "stringData")


def masked(value: Any) -> Any:
    """A property value with secrets replaced by `[secret]` and unknown values by policy.values.UNKNOWN."""
    if isinstance(value, Mapping):
        return _masked_object(value)
    if isinstance(value, list):
        return [masked(one) for one in value]
    if isinstance(value, str):
        return UNKNOWN if value == rpc.UNKNOWN else masked_text(value)
    return value


def masked_text(text: str) -> str:
    """A text without credentials that are known by their form, in clear or in base64."""
    if holds_token(decoded(text) or ""):
        return SECRET
    return _CREDENTIALS.sub(SECRET, text)


def _masked_object(value: Mapping[str, Any]) -> Any:
    if _SIGNATURE in value:
        return SECRET if value[_SIGNATURE] == _SECRET_SIGNATURE else _ASSET
    shown = {key: SECRET if _is_secret(key, one) else masked(one) for key, one in value.items() if key != "__defaults"}
    # A variable of a container: its name tells what its value is.
    if _is_secret(str(value.get("name", "")), value.get("value")):
        shown["value"] = SECRET
    if value.get("kind") == "Secret":
        shown |= {field: dict.fromkeys(value[field], SECRET) for field in _SECRET_FIELDS if _is_object(value, field)}
    return shown


def _is_secret(name: str, value: Any) -> bool:
    return isinstance(value, str) and value not in ("", rpc.UNKNOWN) and _SECRET_NAME.search(name) is not None


def _is_object(value: Mapping[str, Any], field: str) -> bool:
    return isinstance(value.get(field), Mapping) and _SIGNATURE not in value[field]
