"""What `make preview STACK=... OFFLINE=1` asks in place of an AWS account: every answer is a stand-in's.

Pulumi state and plugins are in a folder of their own: what stands in here never does so elsewhere. What is taken to be
so of the account is in stand_ins/account.py.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from neuron.tags import stack_cluster_name
from stand_ins import CHARTS
from stand_ins.account import QUOTA_VCPUS, existing_cluster, opened_account, other_stack
from stand_ins.kubeconfig import eks_kubeconfig, read_access
from stand_ins.toolchain import with_stand_ins
from tools import toolchain
from tools.control_plane.plane import ControlPlane
from tools.environment import STATE_DIRECTORY, pulumi_environment
from tools.errors import ToolchainError, report_error_line
from tools.pulumi_cli import relay_pulumi
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
        copied = copy_project(_DIRECTORY / "project", file, standing_in)
        if (other := other_stack(copied.read_text())) is not None and kubeconfig is not None:
            _import_platform(other, kubeconfig, environment)
        yield environment, copied


def _import_platform(stack: str, kubeconfig: Path, environment: Mapping[str, str]) -> None:
    """Put a stack into the state that exports the control plane as its cluster, as if it had been deployed."""
    _, project, name = stack.split("/")
    kind = "pulumi:pulumi:Stack"
    eks_name, access = stack_cluster_name(project, name), read_access(kubeconfig)
    connection = eks_kubeconfig(eks_name, access.server, access.certificate_authority, environment["AWS_REGION"])
    cluster = {"name": eks_name, "kubeconfig": json.dumps(connection)}
    resource = {
        "urn": f"urn:pulumi:{name}::{project}::{kind}::{project}-{name}",
        "type": kind,
        "custom": False,
        "outputs": {"cluster": cluster},
    }
    state = _DIRECTORY / "platform.json"
    state.write_text(json.dumps({"version": 3, "deployment": {"resources": [resource]}}))
    options = ("--cwd", str(_DIRECTORY / "project"), "--non-interactive")
    for command in (("stack", "select", "--create", name), ("stack", "import", "--stack", name, "--file", str(state))):
        exit_code, lines = relay_pulumi(environment, lambda _: None, *command, *options)
        if exit_code != 0:
            raise ToolchainError("\n".join([f"pulumi cannot make the stand-in for stack {stack}:", *lines]))


@contextmanager
def _control_plane(stack_file: Path) -> Iterator[Path | None]:
    """A control plane to play a cluster that exists, as its kubeconfig; None for a cluster that is still to be made."""
    text = stack_file.read_text()
    if existing_cluster(text) is None and other_stack(text) is None:
        yield None
        return
    plane = ControlPlane(_DIRECTORY / "control-plane")
    try:
        plane.start(report_error_line)
        yield plane.kubeconfig
    finally:
        plane.stop(report_error_line)


def standing_in(stack: Mapping[str, Any]) -> dict[str, Any]:
    """Secret values are encrypted for the real state: placeholders take their place, and stand-ins that of charts.

    The stack whose cluster this one takes is looked for in the state of offline previews.
    """
    config: dict[str, Any] = {key: _without_secret(value) for key, value in (stack.get("config") or {}).items()}
    cluster: dict[str, Any] = {**(config.get("neuron-serving:cluster") or {})}
    if cluster.get("mode") == "stack":
        # State in a folder knows this one organization.
        cluster["stack"] = "/".join(["organization", *str(cluster["stack"]).split("/")[-2:]])
    return {"config": {**config, "neuron-serving:cluster": cluster, "neuron-serving:charts": {"folder": str(CHARTS)}}}


def _without_secret(value: object) -> object:
    return "stand-in" if isinstance(value, dict) and value.keys() == {"secure"} else value
