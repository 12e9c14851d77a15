"""The copies of stack files that Pulumi may write into."""

from pathlib import Path

import yaml

from tools.stack_files import copy_project, holds_salt


def copied(directory: Path, stack: str) -> Path:
    file = directory / "Pulumi.x.yaml"
    file.write_text(stack)
    return copy_project(directory / "project", file)


def test_a_salt_that_pulumi_wrote_into_the_copy_stays_when_it_is_made_anew(tmp_path: Path) -> None:
    copy = copied(tmp_path, "config: {a: 1}")
    copy.write_text("encryptionsalt: v1:salt\nconfig: {a: 1}\n")
    assert yaml.safe_load(copied(tmp_path, "config: {a: 2}").read_text()) == {
        "encryptionsalt": "v1:salt",
        "config": {"a": 2},
    }


def test_the_stack_files_own_salt_comes_before_that_of_an_earlier_copy(tmp_path: Path) -> None:
    copied(tmp_path, "config: {a: 1}").write_text("encryptionsalt: v1:old\n")
    copy = copied(tmp_path, "encryptionsalt: v1:own\nconfig: {a: 1}")
    assert yaml.safe_load(copy.read_text())["encryptionsalt"] == "v1:own"
    assert holds_salt(copy)


def test_the_stack_file_itself_is_left_as_it_is(tmp_path: Path) -> None:
    stack = "# a comment\nconfig:\n  a: 1\n"
    copied(tmp_path, stack)
    assert (tmp_path / "Pulumi.x.yaml").read_text() == stack
