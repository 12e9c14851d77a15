"""What of property values a comment shows."""

import base64
from typing import Any

import pytest
from pulumi.runtime import rpc

from policy.values import UNKNOWN
from tools.review.masking import SECRET, masked, masked_text

TOKEN = "hf_" + "x" * 34
BLINDED = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "[secret]"}

SECRETS: list[Any] = [
    BLINDED,
    TOKEN,
    {"HF_TOKEN": "anything"},
    {"adminPassword": "anything"},
    {"aws_secret_access_key": "anything"},
    [{"name": "OPENAI_API_KEY", "value": "anything"}],
    {"kind": "Secret", "data": {"x": "anything"}, "stringData": {"y": "anything"}},
    {"items": [{"kind": "Secret", "stringData": {"y": "anything"}}]},
    base64.b64encode(f"export HF={TOKEN}".encode()).decode(),
    "AKIAIOSFODNN7EXAMPLE",
    "-----BEGIN RSA PRIVATE KEY-----\nanything\n-----END RSA PRIVATE KEY-----",
]


@pytest.mark.parametrize("value", SECRETS, ids=repr)
def test_a_secret_is_masked_wherever_it_stands(value: object) -> None:
    shown = repr(masked({"spec": [value]}))
    assert SECRET in shown
    assert "anything" not in shown
    assert TOKEN not in shown


def test_a_token_in_the_middle_of_a_text_leaves_the_text() -> None:
    assert masked_text(f"--token={TOKEN} --port 8080") == "--token=[secret] --port 8080"


PLAIN: list[Any] = [
    {"secretKeyRef": {"name": "hf-token", "key": "token"}},
    {"automountServiceAccountToken": False},
    {"secretName": "tls"},
    "aGVsbG8=",
    {"HF_TOKEN": ""},
]


@pytest.mark.parametrize("value", PLAIN, ids=repr)
def test_what_only_names_a_secret_is_shown(value: object) -> None:
    assert masked(value) == value


def test_what_only_the_update_knows_is_unknown() -> None:
    assert masked({"arn": rpc.UNKNOWN}) == {"arn": UNKNOWN}
    assert masked({"apiToken": rpc.UNKNOWN}) == {"apiToken": UNKNOWN}


def test_what_the_sdk_adds_for_itself_is_left_out() -> None:
    assert masked({"__defaults": ["name"], "name": "x"}) == {"name": "x"}
