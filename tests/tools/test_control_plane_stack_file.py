"""Node groups from a stack file, and what is said about a file that has none."""

from pathlib import Path

import pytest

from neuron.instances import instance_type
from tools.control_plane.__main__ import main
from tools.control_plane.nodes import NodeGroup
from tools.control_plane.stack_file import StackFileError, read_node_groups
from tools.versions import ROOT

GROUP = "{name: inferentia, instanceType: inf2.xlarge, nodes: 2}"


def stack_file(directory: Path, groups: str) -> Path:
    file = directory / "Pulumi.test.yaml"
    file.write_text(f"config:\n  neuron-serving:nodeGroups: {groups}\n")
    return file


def test_node_groups_are_read_from_the_stack_file(tmp_path: Path) -> None:
    file = stack_file(tmp_path, f"[{GROUP}, {{name: trainium, instanceType: trn1.2xlarge, nodes: 0}}]")
    assert read_node_groups(file) == (
        NodeGroup("inferentia", instance_type("inf2.xlarge"), 2),
        NodeGroup("trainium", instance_type("trn1.2xlarge"), 0),
    )


def test_the_stack_local_has_nodes() -> None:
    assert sum(group.nodes for group in read_node_groups(ROOT / "stacks" / "Pulumi.local.yaml")) > 0


@pytest.mark.parametrize(
    ("groups", "complaint"),
    [
        ("", "neuron-serving:nodeGroups: found None, needs a list"),
        ("[]", "neuron-serving:nodeGroups: found [], needs a list"),
        ("[inf2.xlarge]", "neuron-serving:nodeGroups[0]: found 'inf2.xlarge', needs {name, instanceType, nodes}"),
        ("[{instanceType: inf2.xlarge, nodes: 1}]", "nodeGroups[0].name: found None, needs text"),
        ("[{name: a, instanceType: p5.48xlarge, nodes: 1}]", "nodeGroups[0].instanceType: found 'p5.48xlarge'"),
        ("[{name: a, instanceType: inf2.xlarge, nodes: two}]", "nodeGroups[0].nodes: found 'two', needs a number"),
        ("[{name: a, instanceType: inf2.xlarge, nodes: true}]", "nodeGroups[0].nodes: found True, needs a number"),
        ("[{name: a, instanceType: inf2.xlarge, nodes: -1}]", "nodeGroups[0].nodes: found -1, needs a number"),
        (f"[{GROUP}, {GROUP}]", "the name 'inferentia' stands more than once"),
        ("[", "is not YAML"),
    ],
)
def test_a_wrong_node_group_gets_one_line_with_its_path(tmp_path: Path, groups: str, complaint: str) -> None:
    file = stack_file(tmp_path, groups)
    with pytest.raises(StackFileError) as error:
        read_node_groups(file)
    assert str(file) in str(error.value)
    assert complaint in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_stack_file_ends_the_command_with_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["up", "--stack-file", str(tmp_path / "absent.yaml"), "--directory", str(tmp_path / "plane")]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert "absent.yaml: cannot be read" in line
    assert not (tmp_path / "plane").exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--node", "inf2.xlarge"], "found 'inf2.xlarge', needs TYPE=COUNT"),
        (["--node", "inf2.xlarge=-1"], "needs TYPE=COUNT"),
        (["--node", "p5.48xlarge=1"], "found 'p5.48xlarge'; known Neuron instance types"),
        (["--time-factor", "0"], "found '0', needs a number above 0"),
        (["--time-factor", "fast"], "found 'fast', needs a number above 0"),
    ],
)
def test_a_wrong_option_is_named(
    arguments: list[str], complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["up", "--directory", str(tmp_path / "plane"), *arguments])
    assert complaint in capsys.readouterr().err
