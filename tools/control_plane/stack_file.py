"""The node groups of a stack file, as the control plane simulates them.

Only what the control plane needs is read here: the program itself checks the whole file.
"""

from pathlib import Path
from typing import Any

import yaml

from neuron.errors import ImpossibleInputError
from neuron.instances import instance_type
from tools.control_plane.nodes import MAX_NODES_OF_A_GROUP, NodeGroup

NODE_GROUPS_KEY = "neuron-serving:nodeGroups"


class StackFileError(Exception):
    """The stack file has no usable node groups; the message is one line with the config path."""


def read_node_groups(file: Path) -> tuple[NodeGroup, ...]:
    """The node groups that `file` (Pulumi.<stack>.yaml) configures.

    Raises:
        StackFileError: the file cannot be read, or its node groups are not a list of {name, instanceType, nodes}.
    """
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise StackFileError(f"{file}: cannot be read ({error}); --stack-file names a stack's file") from None
    except yaml.YAMLError as error:
        raise StackFileError(f"{file}: is not YAML: {' '.join(str(error).split())}") from None
    config = document.get("config") if isinstance(document, dict) else None
    groups = config.get(NODE_GROUPS_KEY) if isinstance(config, dict) else None
    if not isinstance(groups, list) or not groups:
        raise StackFileError(
            f"{file}: {NODE_GROUPS_KEY}: found {groups!r}, needs a list such as [{{name: inferentia, "
            "instanceType: inf2.xlarge, nodes: 2}]; or name nodes with --node inf2.xlarge=2"
        )
    parsed = tuple(_node_group(group, f"{file}: {NODE_GROUPS_KEY}[{index}]") for index, group in enumerate(groups))
    names = [group.name for group in parsed]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise StackFileError(f"{file}: {NODE_GROUPS_KEY}: the name {repeated[0]!r} stands more than once")
    return parsed


def _node_group(group: Any, path: str) -> NodeGroup:
    if not isinstance(group, dict):
        raise StackFileError(f"{path}: found {group!r}, needs {{name, instanceType, nodes}}")
    name = group.get("name")
    if not isinstance(name, str) or not name:
        raise StackFileError(f"{path}.name: found {name!r}, needs text")
    nodes = group.get("nodes")
    # bool is an int to Python, not to YAML.
    if not isinstance(nodes, int) or isinstance(nodes, bool) or not 0 <= nodes <= MAX_NODES_OF_A_GROUP:
        raise StackFileError(f"{path}.nodes: found {nodes!r}, needs a number from 0 to {MAX_NODES_OF_A_GROUP}")
    try:
        return NodeGroup(name, instance_type(str(group.get("instanceType"))), nodes)
    except ImpossibleInputError as error:
        raise StackFileError(f"{path}.instanceType: {error}") from None
