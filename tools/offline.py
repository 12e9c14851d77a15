"""What `make preview STACK=... OFFLINE=1` asks in place of an AWS account: every answer is a stand-in's.

Pulumi state and plugins are in a folder of their own: what stands in here never does so elsewhere. Of the account it
is taken that whatever the stack file names or pins exists, that nothing is in use, and that quotas suffice.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import yaml

from neuron.ami import AMI_NAME_PREFIX
from stand_ins import CHARTS, CONTROL_PLANE_VARIABLE
from stand_ins.aws_api import AwsStandIn, Reply, ec2_page, json_reply
from stand_ins.kubeconfig import read_access
from stand_ins.toolchain import with_stand_ins
from tools import toolchain
from tools.control_plane.plane import ControlPlane
from tools.environment import STATE_DIRECTORY, pulumi_environment
from tools.errors import report_error_line
from tools.stack_files import copy_project

_DIRECTORY = STATE_DIRECTORY / "offline"
_REGION = "us-west-2"
_KEY = "stand-in"
_QUOTA_VCPUS = 128
# What is not pinned gets versions that nobody takes for real ones. The AMI's date is that of a release with a known
# driver, as the check of image lines against drivers would refuse an unknown one.
_ADDON_VERSION = "v0.0.0-eksbuild.0"
_AMI_DATE = "20260625"
# Of a cluster that exists, unless the stack file says another.
_KUBERNETES_VERSION = "1.36"

NOTICE = f"""OFFLINE: no account is asked. Stand-ins: the plugins aws and eks, the AWS API (moto), and the Helm charts.
Names, ids and ARNs are made up; pinned versions are taken to exist; quotas are taken to be {_QUOTA_VCPUS} vCPUs."""


@contextmanager
def stand_ins(file: Path) -> Iterator[tuple[dict[str, str], Path]]:
    """What stands in for the account of a stack, running: the environment for Pulumi, and the stack file to use."""
    tools = with_stand_ins(toolchain.ensure(report=report_error_line))
    with _control_plane(file) as kubeconfig, account(file, kubeconfig) as variables:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        environment = {**inherited, **pulumi_environment(_DIRECTORY, tools), **variables}
        yield environment, copy_project(_DIRECTORY / "project", file, _standing_in)


def replies(stack_file: str) -> Mapping[str, Reply]:
    """What moto cannot answer, by action, so that it fits the text of a stack file."""
    minors = _kubernetes_versions(stack_file)
    releases = re.findall(r"\bamiRelease:\s*[\"']?([\d.]+-)?(20\d{6})\b", stack_file)
    addons = [_ADDON_VERSION, *sorted(set(re.findall(r"\bv\d+\.\d+\.\d+-eksbuild\.\d+\b", stack_file)))]
    return {
        "DescribeAddonVersions": json_reply(_addons(minors, addons)),
        "DescribeCapacityReservations": ec2_page("DescribeCapacityReservations", "capacityReservationSet", []),
        "GetParameters": json_reply({"Parameters": list(_ami_parameters(minors, releases)), "InvalidParameters": []}),
        "GetServiceQuota": json_reply({"Quota": {"Value": _QUOTA_VCPUS}}),
    }


def _kubernetes_versions(stack_file: str) -> list[str]:
    return re.findall(r"\bversion:\s*[\"']?(1\.\d+)\b", stack_file) or [_KUBERNETES_VERSION]


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


def _ami_parameters(minors: list[str], releases: list[tuple[str, str]]) -> Iterator[dict[str, Any]]:
    """The public parameters of the pinned AMI releases, and of a recommended one, for each Kubernetes minor.

    A pin is a date with or without the version before it.
    """
    for minor in minors:
        pinned = {date: f"{version or f'{minor}.0-'}{date}" for version, date in releases}
        for date, release in pinned.items():
            yield from _entry(minor, f"{AMI_NAME_PREFIX}{minor}-v{date}", release)
        yield from _entry(minor, "recommended", f"{minor}.0-{_AMI_DATE}")


def _entry(minor: str, entry: str, release: str) -> Iterator[dict[str, Any]]:
    folder = f"/aws/service/eks/optimized-ami/{minor}/amazon-linux-2023/x86_64/neuron/{entry}"
    values = {"image_id": f"ami-{release.partition('-')[2]:0>17}", "release_version": release}
    for name, value in values.items():
        yield {"Name": f"{folder}/{name}", "Type": "String", "Value": value, "Version": 1}


@contextmanager
def _control_plane(stack_file: Path) -> Iterator[Path | None]:
    """A control plane to play a cluster that exists, as its kubeconfig; None for a cluster that is still to be made."""
    if _existing_cluster(stack_file) is None:
        yield None
        return
    plane = ControlPlane(_DIRECTORY / "control-plane")
    try:
        plane.start(report_error_line)
        yield plane.kubeconfig
    finally:
        plane.stop(report_error_line)


def _existing_cluster(stack_file: Path) -> str | None:
    """The name of the EKS cluster that the stack finds."""
    config = yaml.safe_load(stack_file.read_text()).get("config") or {}
    cluster = config.get("neuron-serving:cluster") or {}
    return cluster.get("name") if cluster.get("mode") == "existing" else None


@contextmanager
def account(stack_file: Path, kubeconfig: Path | None) -> Iterator[dict[str, str]]:
    """The AWS API, running, and the variables with which the AWS SDKs find it and no real account."""
    api = AwsStandIn()
    try:
        text, cluster, region = stack_file.read_text(), _existing_cluster(stack_file), _region(stack_file)
        for action, reply in replies(text).items():
            api.reply(action, reply)
        if cluster and kubeconfig:
            api.reply(f"/clusters/{cluster}", _cluster(cluster, text, kubeconfig, _default_subnets(api, region)))
        empty = str(_DIRECTORY / "no-aws-configuration")
        yield {
            "AWS_ENDPOINT_URL": api.url,
            "AWS_ACCESS_KEY_ID": _KEY,
            "AWS_SECRET_ACCESS_KEY": _KEY,
            "AWS_REGION": region,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": empty,
            "AWS_SHARED_CREDENTIALS_FILE": empty,
            "NO_PROXY": "127.0.0.1",
            **({CONTROL_PLANE_VARIABLE: str(kubeconfig)} if kubeconfig else {}),
        }
    finally:
        api.close()


def _region(stack_file: Path) -> str:
    config = yaml.safe_load(stack_file.read_text()).get("config") or {}
    return str(config.get("aws:region", _REGION))


def _default_subnets(api: AwsStandIn, region: str) -> list[str]:
    """The subnets that moto has in every region: one in each zone."""
    client = boto3.client(
        "ec2", region_name=region, endpoint_url=api.url, aws_access_key_id=_KEY, aws_secret_access_key=_KEY
    )
    return [subnet["SubnetId"] for subnet in client.describe_subnets()["Subnets"]]


def _cluster(name: str, stack_file: str, kubeconfig: Path, subnet_ids: list[str]) -> Reply:
    """The answer to DescribeCluster."""
    access = read_access(kubeconfig)
    cluster = {
        "name": name,
        "status": "ACTIVE",
        "version": _kubernetes_versions(stack_file)[0],
        "endpoint": access.server,
        "certificateAuthority": {"data": access.certificate_authority},
        "resourcesVpcConfig": {"subnetIds": subnet_ids},
    }
    return json_reply({"cluster": cluster})


def _standing_in(stack: Mapping[str, Any]) -> dict[str, Any]:
    """Secret values are encrypted for the real state: placeholders take their place, and stand-ins that of charts."""
    config = {key: _without_secret(value) for key, value in (stack.get("config") or {}).items()}
    return {"config": {**config, "neuron-serving:charts": {"folder": str(CHARTS)}}}


def _without_secret(value: object) -> object:
    return "stand-in" if isinstance(value, dict) and value.keys() == {"secure"} else value
