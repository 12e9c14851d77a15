"""What a running control plane has, read from its API server and written as a table."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from neuron.instances import CHIP_RESOURCE, INSTANCE_TYPE_LABEL
from tools.control_plane.api import Api
from tools.control_plane.configure import is_ready
from tools.control_plane.nodes import ZONE_LABEL, Object

_FINISHED = ("Succeeded", "Failed")
_HEADER = ("NODE", "TYPE", "ZONE", "READY", "CHIPS", "CPU", "MEMORY")


@dataclass(frozen=True)
class NodeStatus:
    """A node and its allocatable; `chips_in_use` counts those of pods that are being deleted too."""

    name: str
    instance_type: str
    zone: str
    is_ready: bool
    chips: int
    chips_in_use: int
    cpu: str
    memory: str


@dataclass(frozen=True)
class Status:
    """A running control plane; `version` is the API server's."""

    address: str
    version: str
    nodes: tuple[NodeStatus, ...]


def read_status(api: Api) -> Status:
    """Ask the API server; ApiError if it refuses."""
    in_use = _chips_in_use(api.get("/api/v1/pods")["items"])
    nodes = (_node_status(node, in_use) for node in api.get("/api/v1/nodes")["items"])
    return Status(api.address, api.get("/version")["gitVersion"], tuple(nodes))


def _chips_in_use(pods: Sequence[Object]) -> Counter[str]:
    in_use: Counter[str] = Counter()
    for pod in pods:
        if pod["status"].get("phase") not in _FINISHED:
            requests = (one.get("resources", {}).get("requests", {}) for one in pod["spec"]["containers"])
            in_use[pod["spec"].get("nodeName", "")] += sum(int(one.get(CHIP_RESOURCE, 0)) for one in requests)
    return in_use


def _node_status(node: Object, in_use: Counter[str]) -> NodeStatus:
    name, labels = node["metadata"]["name"], node["metadata"].get("labels", {})
    allocatable = node["status"].get("allocatable", {})
    return NodeStatus(
        name=name,
        instance_type=labels.get(INSTANCE_TYPE_LABEL, "-"),
        zone=labels.get(ZONE_LABEL, "-"),
        is_ready=is_ready(node),
        chips=int(allocatable.get(CHIP_RESOURCE, 0)),
        chips_in_use=in_use[name],
        cpu=allocatable.get("cpu", "-"),
        memory=allocatable.get("memory", "-"),
    )


def format_status(status: Status) -> str:
    """A heading and a table with one line a node."""
    rows = [_HEADER, *(_row(node) for node in status.nodes)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADER))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([f"API server {status.version} at {status.address}", *lines])


def _row(node: NodeStatus) -> tuple[str, ...]:
    ready = "yes" if node.is_ready else "no"
    chips = f"{node.chips_in_use} of {node.chips}"
    return (node.name, node.instance_type, node.zone, ready, chips, node.cpu, node.memory)
