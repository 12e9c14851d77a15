"""`make up` and `make down`: the stack `local` on the local control plane, with Pulumi state and plugins of its own."""

import json
import os
import shutil
import sys

import yaml

from components.configuration import parse_settings
from components.faults import ConfigurationError
from components.plans import serving_plans
from neuron.startup import StartUp
from tools import toolchain
from tools.control_plane.api import Api
from tools.control_plane.nodes import Object
from tools.control_plane.plane import ControlPlane, ControlPlaneError
from tools.control_plane.stack_file import StackFileError, read_node_groups
from tools.control_plane.status import format_status, read_status
from tools.environment import PROJECT_COPY, STATE_DIRECTORY, pulumi_environment
from tools.errors import ToolchainError, report_line
from tools.pulumi_cli import run_pulumi
from tools.stack_files import copy_project, holds_salt
from tools.versions import ROOT, PinError

STACK = "local"
STACK_FILE = ROOT / "stacks" / f"Pulumi.{STACK}.yaml"

_NEXT = """Real: API server, scheduler, controllers, Pulumi engine and policy pack. Simulated: nodes, chips and vLLM.
Look:    kubectl --kubeconfig "$(make -s kubeconfig)" get pods --all-namespaces
Change:  edit stacks/Pulumi.local.yaml, make preview, make up
End:     make down"""


def up() -> int:
    """Start the control plane, deploy the stack under the policy pack, say what runs where; returns the exit code."""
    start_up = _slowest_start()
    tools = toolchain.ensure()
    plane = ControlPlane(node_groups=read_node_groups(STACK_FILE), start_up=start_up)
    if not plane.is_running:
        # A new control plane is empty: what the old state says of it is no longer true.
        shutil.rmtree(STATE_DIRECTORY / "state", ignore_errors=True)
    plane.start(report_line)
    environment = {**os.environ, **pulumi_environment(STATE_DIRECTORY, tools)}
    copied = copy_project(PROJECT_COPY, STACK_FILE)
    selected = run_pulumi(environment, "--cwd", str(PROJECT_COPY), "stack", "select", "--create", STACK)
    if selected != 0:
        return selected
    options = ("--yes", "--policy-pack", "policy", "--config-file", str(copied))
    deployed = run_pulumi(environment, "up", "--stack", STACK, *options)
    if deployed == 0:
        print(_summary(plane))
    return deployed


def _slowest_start() -> StartUp:
    """How the stack's pods start: warm where they find their model published. ConfigurationError for a bad stack."""
    stack = yaml.safe_load(STACK_FILE.read_text())["config"]
    settings = parse_settings({key.partition(":")[2]: json.dumps(value) for key, value in stack.items()})
    return max((plan.start for plan in serving_plans(settings)), key=lambda start: start.total_seconds)


def down() -> int:
    """End the control plane and remove all that is in its folder, but for a passphrase that stack files depend on."""
    ControlPlane().stop(report_line)
    passphrase = STATE_DIRECTORY / "passphrase"
    holders = [file.name for file in sorted(STACK_FILE.parent.glob("Pulumi.*.yaml")) if holds_salt(file)]
    kept = passphrase.read_text() if passphrase.exists() and holders else None
    shutil.rmtree(STATE_DIRECTORY, ignore_errors=True)
    if kept is not None:
        STATE_DIRECTORY.mkdir(mode=0o700)
        passphrase.touch(mode=0o600)
        passphrase.write_text(kept)
        report_line(f"kept the passphrase: values in {', '.join(holders)} are encrypted with it")
    return 0


def _summary(plane: ControlPlane) -> str:
    api = Api(plane.kubeconfig)
    deployments = api.get("/apis/apps/v1/deployments?labelSelector=app.kubernetes.io/part-of=neuron-serving")["items"]
    return "\n".join(["", format_status(read_status(api)), *map(_readiness, deployments), "", _NEXT])


def _readiness(deployment: Object) -> str:
    metadata, wanted = deployment["metadata"], deployment["spec"]["replicas"]
    available = deployment["status"].get("availableReplicas", 0)
    return f"{metadata['namespace']}/{metadata['name']}: {available} of {wanted} pods available"


def main() -> int:
    """Run one of the two commands."""
    commands = {"up": up, "down": down}
    if len(sys.argv) != 2 or sys.argv[1] not in commands:
        print("usage: python -m tools.rehearsal up|down", file=sys.stderr)
        return 2
    try:
        return commands[sys.argv[1]]()
    except (ControlPlaneError, StackFileError, ToolchainError, PinError, ConfigurationError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here, `make down` removes what there is", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
