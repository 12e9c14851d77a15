"""What the pack's cache of decoded resources returns is what the SDK returns without it, unknown values apart."""

from typing import Any

import pulumi
import pulumi_policy.policy
import pytest
from pulumi_policy import ResourceValidationArgs
from pulumi_policy.deserialize import SPECIAL_ASSET_SIG, SPECIAL_SECRET_SIG, SPECIAL_SIG_KEY
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policy.decoding import decode_once
from policy.resources import from_resource_args
from policy.values import UNKNOWN
from tests.policy.conftest import struct
from tests.policy.judging import OPTIONS

# The SDK exports what is replaced in it to nobody.
sdk: Any = pulumi_policy.policy
NAMES = ("json_format", "deserialize_properties", "unknown_checking_proxy")
PROPS = {
    "secret": {SPECIAL_SIG_KEY: SPECIAL_SECRET_SIG, "value": {"a": [1]}},
    "asset": {SPECIAL_SIG_KEY: SPECIAL_ASSET_SIG, "text": "a: 1"},
    "unknown": [UNKNOWN_STRING_VALUE],
}


@pytest.fixture
def decoding_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK with the cache in place, and without it afterwards."""
    for name in NAMES:
        monkeypatch.setattr(sdk, name, getattr(sdk, name))
    decode_once()


def as_the_sdk_does(props: dict[str, object]) -> Any:
    return sdk.unknown_checking_proxy(sdk.deserialize_properties(sdk.json_format.MessageToDict(struct(props))))


@pytest.mark.usefixtures("decoding_once")
def test_secrets_are_unpacked_assets_made_and_unknown_values_marked() -> None:
    decoded = as_the_sdk_does(PROPS)
    assert decoded["secret"]["a"][0] == 1
    assert isinstance(decoded["asset"], pulumi.StringAsset)
    assert decoded["unknown"] == [UNKNOWN]


@pytest.mark.usefixtures("decoding_once")
def test_equal_content_is_decoded_once_and_other_content_anew() -> None:
    assert as_the_sdk_does(PROPS) is as_the_sdk_does(PROPS)
    assert as_the_sdk_does({"other": 1}) is not as_the_sdk_does(PROPS)


@pytest.mark.usefixtures("decoding_once")
def test_what_did_not_come_from_a_message_and_remediation_go_the_way_of_the_sdk() -> None:
    assert sdk.deserialize_properties({"asset": PROPS["asset"]}) != {"asset": PROPS["asset"]}
    message = sdk.json_format.MessageToDict(struct(PROPS))
    assert type(sdk.deserialize_properties(message, True)["secret"]) is not dict


def test_an_sdk_that_has_changed_is_told_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.setattr(sdk, name, getattr(sdk, name))
    monkeypatch.delattr(sdk, "unknown_checking_proxy")
    with pytest.raises(ImportError, match=r"no unknown_checking_proxy any more: adapt policy/decoding\.py"):
        decode_once()


def test_values_that_the_sdk_decoded_itself_are_refused_and_not_taken_for_absent() -> None:
    props = sdk.unknown_checking_proxy({"spec": {}})
    args = ResourceValidationArgs("a:b:C", props, "urn", "name", OPTIONS, None, None)
    with pytest.raises(TypeError, match=r"call policy\.decoding\.decode_once"):
        from_resource_args(args)
