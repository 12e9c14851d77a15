"""`python -m tools.control_plane up | down | kubeconfig | status`."""

import argparse
import math
import sys
from pathlib import Path

from neuron.errors import ImpossibleInputError
from neuron.instances import instance_type
from neuron.startup import COLD, WARM, StartUp
from tools.control_plane.api import Api, ApiError
from tools.control_plane.nodes import MAX_NODES_OF_A_GROUP, NodeGroup
from tools.control_plane.plane import DEFAULT_DIRECTORY, DEFAULT_TIME_FACTOR, ControlPlane, ControlPlaneError
from tools.control_plane.stack_file import StackFileError, read_node_groups
from tools.control_plane.status import format_status, read_status
from tools.errors import ToolchainError, report_line
from tools.versions import ROOT, PinError

_STARTS = {"warm": WARM, "cold": COLD}


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit code is 1 when it cannot be done, with one line that says why."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        return _COMMANDS[options.command](options)
    except (ControlPlaneError, StackFileError, ToolchainError, PinError, ApiError) as error:
        print(error, file=sys.stderr)
        return 1


def _up(options: argparse.Namespace) -> int:
    groups = _one_group_a_type(options.node) if options.node else read_node_groups(options.stack_file)
    start_up: StartUp = _STARTS[options.start]
    plane = ControlPlane(options.directory, groups, start_up, options.time_factor)
    plane.start(report_line)
    report_line(_time_line(options.start, start_up, options.time_factor))
    return 0


def _down(options: argparse.Namespace) -> int:
    ControlPlane(options.directory).stop(report_line)
    return 0


def _kubeconfig(options: argparse.Namespace) -> int:
    kubeconfig = ControlPlane(options.directory).kubeconfig
    if not kubeconfig.exists():
        print("no control plane runs, so there is no kubeconfig; `make up` starts one", file=sys.stderr)
        return 1
    print(kubeconfig)
    return 0


def _status(options: argparse.Namespace) -> int:
    plane = ControlPlane(options.directory)
    configuration = plane.recorded_configuration
    if configuration is None or not plane.is_running:
        print(f"no control plane runs in {plane.directory}", file=sys.stderr)
        return 1
    print(format_status(read_status(Api(plane.kubeconfig))))
    start_up = StartUp(**configuration["start_up"])
    start = next((name for name, measured in _STARTS.items() if measured == start_up), "configured")
    print(_time_line(start, start_up, configuration["time_factor"]))
    return 0


_COMMANDS = {"up": _up, "down": _down, "kubeconfig": _kubeconfig, "status": _status}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.control_plane", description=_DESCRIPTION)
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="start it, or change the one that runs")
    nodes = up.add_mutually_exclusive_group()
    nodes.add_argument(
        "--node", action="append", type=_node, metavar="TYPE=COUNT", help="such as inf2.xlarge=2; may be repeated"
    )
    nodes.add_argument(
        "--stack-file",
        type=Path,
        default=ROOT / "stacks" / "Pulumi.local.yaml",
        help="take the node groups of this stack (default: %(default)s)",
    )
    up.add_argument("--time-factor", type=_factor, default=DEFAULT_TIME_FACTOR, help="default: %(default)g")
    up.add_argument("--start", choices=list(_STARTS), default="warm", help="start of a server (default: %(default)s)")
    commands.add_parser("down", help="end its processes and remove its folder")
    commands.add_parser("kubeconfig", help="print the path of its kubeconfig")
    commands.add_parser("status", help="print its nodes")
    for command in commands.choices.values():
        command.add_argument("--directory", type=Path, default=DEFAULT_DIRECTORY, help="default: %(default)s")
    return parser


_DESCRIPTION = "A Kubernetes control plane on this machine with simulated Neuron nodes."


def _node(text: str) -> tuple[str, int]:
    name, _, count = text.partition("=")
    if not count.isdecimal() or int(count) > MAX_NODES_OF_A_GROUP:
        raise argparse.ArgumentTypeError(f"found {text!r}, needs TYPE=COUNT with at most {MAX_NODES_OF_A_GROUP} nodes")
    try:
        return instance_type(name).name, int(count)
    except ImpossibleInputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _one_group_a_type(nodes: list[tuple[str, int]]) -> tuple[NodeGroup, ...]:
    """The last count of a type holds, as with other repeated options."""
    return tuple(
        NodeGroup(f"neuron-{name.replace('.', '-')}", instance_type(name), count) for name, count in dict(nodes).items()
    )


def _factor(text: str) -> float:
    try:
        factor = float(text)
    except ValueError:
        factor = math.nan
    if not 0 < factor < math.inf:
        raise argparse.ArgumentTypeError(f"found {text!r}, needs a number above 0")
    return factor


def _time_line(start: str, start_up: StartUp, factor: float) -> str:
    total = start_up.total_seconds
    return f"time runs {factor:g}x: a {start} start of {_duration(total)} takes {_duration(total / factor)}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.2g} s" if seconds < 1 else f"{rest} s"


if __name__ == "__main__":
    sys.exit(main())
