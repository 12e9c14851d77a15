"""`make preview STACK=... OFFLINE=1`: a preview without an AWS account, whose every answer is a stand-in's.

Pulumi state and plugins are in a folder of their own: what stands in here never does so elsewhere. Of the account it
is taken that whatever the stack file pins exists, that nothing is in use, and that quotas suffice.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.aws.stand_in import AwsStandIn, Reply, ec2_page, json_reply
from tests.stand_ins.toolchain import with_stand_ins
from tools import toolchain
from tools.environment import STATE_DIRECTORY, pulumi_environment
from tools.errors import ToolchainError
from tools.versions import ROOT, PinError

_DIRECTORY = STATE_DIRECTORY / "offline"
_REGION = "us-west-2"
_QUOTA_VCPUS = 128
# What is not pinned gets versions that nobody takes for real ones. The AMI's date is that of a release with a known
# driver, as the check of image lines against drivers would refuse an unknown one.
_ADDON_VERSION = "v0.0.0-eksbuild.0"
_AMI_DATE = "20260714"

_NOTICE = f"""OFFLINE: no account is asked. Stand-ins: the plugins aws and eks, and the AWS API (moto).
Names, ids and ARNs are made up; pinned versions are taken to exist; quotas are taken to be {_QUOTA_VCPUS} vCPUs."""


class OfflineError(Exception):
    """Why there is nothing to preview, in one line."""


def preview(stack: str) -> int:
    """Preview a stack under the policy pack; returns the exit code.

    Raises:
        OfflineError: no such stack file.
    """
    file = ROOT / "stacks" / f"Pulumi.{stack}.yaml"
    if not file.exists():
        known = ", ".join(sorted(path.name.split(".")[1] for path in file.parent.glob("Pulumi.*.yaml")))
        raise OfflineError(f"STACK={stack} has no {file.relative_to(ROOT)}; the stacks are {known}")
    print(_NOTICE, flush=True)
    tools = with_stand_ins(toolchain.ensure())
    with _account(file.read_text()) as account:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        environment = {**inherited, **pulumi_environment(_DIRECTORY, tools), **account}
        copy = _copy_project(file)
        selected = _pulumi(environment, "--cwd", str(copy.parent.parent), "stack", "select", "--create", stack)
        if selected != 0:
            return selected
        options = ("--policy-pack", "policy", "--diff", "--config-file", str(copy))
        exit_code = _pulumi(environment, "preview", "--stack", stack, *options)
    print(_NOTICE, flush=True)
    return exit_code


def replies(stack_file: str) -> Mapping[str, Reply]:
    """What moto cannot answer, by action, so that it fits the text of a stack file."""
    minors = sorted({match[1] for match in re.finditer(r"version:\s*[\"']?(1\.\d+)\b", stack_file)})
    releases = re.findall(r"\b1\.\d+\.\d+-20\d{6}\b", stack_file)
    addons = [_ADDON_VERSION, *sorted(set(re.findall(r"\bv\d+\.\d+\.\d+-eksbuild\.\d+\b", stack_file)))]
    return {
        "DescribeAddonVersions": json_reply(_addons(minors, addons)),
        "DescribeCapacityReservations": ec2_page("DescribeCapacityReservations", "capacityReservationSet", []),
        "GetParameters": json_reply({"Parameters": list(_ami_parameters(minors, releases)), "InvalidParameters": []}),
        "GetServiceQuota": json_reply({"Quota": {"Value": _QUOTA_VCPUS}}),
    }


def _addons(minors: list[str], versions: list[str]) -> dict[str, Any]:
    """All versions for every add-on: who pins one finds it, who pins none gets the first."""
    infos = [
        {
            "addonVersion": version,
            "compatibilities": [
                {"clusterVersion": minor, "defaultVersion": version == _ADDON_VERSION} for minor in minors
            ],
        }
        for version in versions
    ]
    return {"addons": [{"addonName": "stand-in", "addonVersions": infos}]}


def _ami_parameters(minors: list[str], releases: list[str]) -> Iterator[dict[str, Any]]:
    """The public parameters of the pinned AMI releases, and of a recommended one for each Kubernetes minor."""
    recommended = {minor: f"{minor}.0-{_AMI_DATE}" for minor in minors}
    for release in releases:
        version, _, date = release.partition("-")
        minor = version.rpartition(".")[0]
        recommended[minor] = release
        yield from _entry(minor, f"amazon-eks-node-al2023-x86_64-neuron-{minor}-v{date}", release)
    for minor, release in recommended.items():
        yield from _entry(minor, "recommended", release)


def _entry(minor: str, entry: str, release: str) -> Iterator[dict[str, Any]]:
    folder = f"/aws/service/eks/optimized-ami/{minor}/amazon-linux-2023/x86_64/neuron/{entry}"
    values = {"image_id": f"ami-{release.partition('-')[2]:0>17}", "release_version": release}
    for name, value in values.items():
        yield {"Name": f"{folder}/{name}", "Type": "String", "Value": value, "Version": 1}


@contextmanager
def _account(stack_file: str) -> Iterator[dict[str, str]]:
    """The AWS API, running, and the variables with which the AWS SDKs find it and no real account."""
    api = AwsStandIn()
    try:
        for action, reply in replies(stack_file).items():
            api.reply(action, reply)
        empty = str(_DIRECTORY / "no-aws-configuration")
        yield {
            "AWS_ENDPOINT_URL": api.url,
            "AWS_ACCESS_KEY_ID": "stand-in",
            "AWS_SECRET_ACCESS_KEY": "stand-in",
            "AWS_REGION": os.environ.get("AWS_REGION", _REGION),
            "AWS_DEFAULT_REGION": os.environ.get("AWS_REGION", _REGION),
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": empty,
            "AWS_SHARED_CREDENTIALS_FILE": empty,
            "NO_PROXY": "127.0.0.1",
        }
    finally:
        api.close()


def _copy_project(stack_file: Path) -> Path:
    """Copy Pulumi.yaml and the stack file, as Pulumi writes a salt into it; returns the copied stack file.

    Secret values are encrypted for the real state: placeholders take their place.
    """
    project = _DIRECTORY / "project"
    copy = project / "stacks" / stack_file.name
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "Pulumi.yaml", project)
    stack = yaml.safe_load(stack_file.read_text())
    salt = yaml.safe_load(copy.read_text()).get("encryptionsalt") if copy.exists() else None
    kept = {"encryptionsalt": salt} if salt else {}
    config = {key: _without_secret(value) for key, value in (stack.get("config") or {}).items()}
    copy.write_text(yaml.safe_dump({**kept, "config": config}, sort_keys=False))
    return copy


def _without_secret(value: object) -> object:
    return "stand-in" if isinstance(value, dict) and value.keys() == {"secure"} else value


def _pulumi(environment: Mapping[str, str], *arguments: str) -> int:
    return subprocess.run(["pulumi", *arguments], cwd=ROOT, env=environment, check=False).returncode


def main() -> int:
    """Preview the stack that the command line names."""
    if len(sys.argv) != 2:
        print("usage: python -m tools.offline STACK", file=sys.stderr)
        return 2
    try:
        return preview(sys.argv[1])
    except (OfflineError, ToolchainError, PinError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
