"""What `make preview STACK=... OFFLINE=1` asks in place of an AWS account: every answer is a stand-in's.

Pulumi state and plugins are in a folder of their own: what stands in here never does so elsewhere. What is taken to be
so of the account is in stand_ins/account.py.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stand_ins import CHARTS
from stand_ins.account import QUOTA_VCPUS, existing_cluster, opened_account
from stand_ins.toolchain import with_stand_ins
from tools import toolchain
from tools.control_plane.plane import ControlPlane
from tools.environment import STATE_DIRECTORY, pulumi_environment
from tools.errors import report_error_line
from tools.stack_files import copy_project

_DIRECTORY = STATE_DIRECTORY / "offline"

NOTICE = f"""OFFLINE: no account is asked. Stand-ins: the plugins aws and eks, the AWS API (moto), and the Helm charts.
Names, ids and ARNs are made up; pinned versions are taken to exist; quotas are taken to be {QUOTA_VCPUS} vCPUs."""


@contextmanager
def stand_ins(file: Path) -> Iterator[tuple[dict[str, str], Path]]:
    """What stands in for the account of a stack, running: the environment for Pulumi, and the stack file to use."""
    tools = with_stand_ins(toolchain.ensure(report=report_error_line))
    with _control_plane(file) as kubeconfig, opened_account(file, kubeconfig) as variables:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        environment = {**inherited, **pulumi_environment(_DIRECTORY, tools), **variables}
        yield environment, copy_project(_DIRECTORY / "project", file, _standing_in)


@contextmanager
def _control_plane(stack_file: Path) -> Iterator[Path | None]:
    """A control plane to play a cluster that exists, as its kubeconfig; None for a cluster that is still to be made."""
    if existing_cluster(stack_file.read_text()) is None:
        yield None
        return
    plane = ControlPlane(_DIRECTORY / "control-plane")
    try:
        plane.start(report_error_line)
        yield plane.kubeconfig
    finally:
        plane.stop(report_error_line)


def _standing_in(stack: Mapping[str, Any]) -> dict[str, Any]:
    """Secret values are encrypted for the real state: placeholders take their place, and stand-ins that of charts."""
    config = {key: _without_secret(value) for key, value in (stack.get("config") or {}).items()}
    return {"config": {**config, "neuron-serving:charts": {"folder": str(CHARTS)}}}


def _without_secret(value: object) -> object:
    return "stand-in" if isinstance(value, dict) and value.keys() == {"secure"} else value
