"""Reading properties in which unknown values stand."""

from typing import Any

import pulumi
import pytest
from pulumi_policy.proxy import UNKNOWN_OBJECT_VALUE, UNKNOWN_STRING_VALUE

from policy.values import Node, mark_unknown


def node(props: dict[str, Any]) -> Node:
    return Node(mark_unknown(props))


def test_a_path_names_keys_indexes_and_keys_with_dots() -> None:
    root = node({"spec": {"limits": {"aws.amazon.com/neuron": [1]}}})
    assert root.at("spec", "limits", "aws.amazon.com/neuron", 0).path == 'spec.limits["aws.amazon.com/neuron"][0]'


def test_a_missing_value_and_null_are_both_absent() -> None:
    root = node({"null": None, "list": [1]})
    assert root.at("null").is_absent()
    assert root.at("missing", "below", 3).is_absent()
    assert root.at("list", 7).is_absent()
    assert root.unseen == []


def test_an_unknown_value_is_neither_absent_nor_present_and_is_noted_once() -> None:
    root = node({"image": UNKNOWN_STRING_VALUE})
    assert not root.at("image").is_absent()
    assert not root.at("image").is_present()
    assert root.at("image").is_unknown()
    assert root.unseen == ["image"]


def test_what_lies_below_an_unknown_value_is_reported_by_the_path_of_that_value() -> None:
    root = node({"spec": UNKNOWN_OBJECT_VALUE})
    assert list(root.at("spec", "containers").elements()) == []
    assert root.unseen == ["spec"]


def test_an_unknown_element_does_not_hide_its_neighbours() -> None:
    root = node({"list": ["a", UNKNOWN_STRING_VALUE, "c"], "map": {"x": UNKNOWN_STRING_VALUE, "y": "known"}})
    assert [one.text() for one in root.at("list").elements()] == ["a", None, "c"]
    assert {key: one.text() for key, one in root.at("map").fields()} == {"x": None, "y": "known"}
    assert root.unseen == ["list[1]", "map.x"]


def test_reading_quietly_notes_nothing() -> None:
    root = node({"name": UNKNOWN_STRING_VALUE})
    assert root.at("name").quiet().text() is None
    assert root.unseen == []


@pytest.mark.parametrize(
    ("value", "expected"), [(3, 3), (3.0, 3), ("3", 3), (3.5, None), ("many", None), (True, None), ([], None)]
)
def test_whole_numbers_are_read_however_json_spells_them(value: object, expected: int | None) -> None:
    assert node({"count": value}).at("count").integer() == expected


def test_a_text_has_neither_fields_nor_elements() -> None:
    assert list(node({"text": "abc"}).at("text").elements()) == []
    assert list(node({"text": "abc"}).at("text").fields()) == []
    assert node({"text": "abc"}).at("text", 0).is_absent()


def test_only_assets_that_are_text_are_read_as_such() -> None:
    root = node({"files": [pulumi.StringAsset("a: 1"), pulumi.FileAsset("values.yaml"), "plain"]})
    assert [one.asset_text() for one in root.at("files").elements()] == ["a: 1", None, None]
