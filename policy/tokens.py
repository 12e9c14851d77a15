"""Hugging Face tokens: what they look like, and the encodings in which text hides them."""

import base64
import binascii
import email
import gzip
import re
import zlib
from collections.abc import Iterator

# The variables that huggingface_hub and the servers read.
TOKEN_VARIABLES = frozenset({"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_TOKEN"})
_TOKEN = re.compile(r"hf_[A-Za-z0-9]{20,}", re.ASCII)
# Kubernetes expands $(X), shells ${X}, $X and $(command), Helm {{ x }}.
_EXPANSION = re.compile(r"\$\([^()]*\)|\$\{[^{}]*\}|\$\w+|\{\{.*?\}\}", re.DOTALL)
_GZIP_MAGIC = b"\x1f\x8b"


def holds_token(text: str) -> bool:
    """Whether a token stands anywhere in the text."""
    return _TOKEN.search(text) is not None


def is_literal(value: str) -> bool:
    """Whether a variable's value is a text of its own, not empty and not made of expansions alone."""
    return _EXPANSION.sub("", value).strip(" \t\r\n\"'") != ""


def redact(text: str) -> str:
    """The text without any token."""
    return _TOKEN.sub("<redacted>", text)


def decoded(encoded: str) -> str | None:
    """The text inside base64, gzip-compressed or not; None if it is not base64."""
    try:
        content = base64.b64decode("".join(encoded.split()), validate=True)
    except (binascii.Error, ValueError):
        return None
    if content.startswith(_GZIP_MAGIC):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error):
            return None
    return content.decode("utf-8", errors="replace")


def user_data_texts(user_data: str) -> Iterator[str]:
    """The texts of EC2 user data, given plain or in base64: itself and each part of a MIME message, decoded."""
    text = decoded(user_data) or user_data
    yield text
    for part in email.message_from_string(text).walk():
        payload = part.get_payload(decode=True)
        if isinstance(payload, bytes):
            yield payload.decode("utf-8", errors="replace")
