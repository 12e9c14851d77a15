"""The AWS account that a stack file speaks of: whatever the file names or pins exists, nothing is in use, and quotas
suffice.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import yaml

from neuron.ami import AMI_NAME_PREFIX
from stand_ins import CONTROL_PLANE_VARIABLE
from stand_ins.aws_api import AwsStandIn, Reply, ec2_page, json_reply
from stand_ins.kubeconfig import read_access

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

QUOTA_VCPUS = 128
_REGION = "us-west-2"
_KEY = "stand-in"
# What is not pinned gets versions that nobody takes for real ones. The AMI's date is that of a release with a known
# driver, as the check of image lines against drivers would refuse an unknown one.
_ADDON_VERSION = "v0.0.0-eksbuild.0"
_AMI_DATE = "20260625"
# Of a cluster that exists, unless the stack file says another.
_KUBERNETES_VERSION = "1.36"


@contextmanager
def opened_account(stack_file: Path, kubeconfig: Path | None) -> Iterator[dict[str, str]]:
    """The AWS API, running, as the variables with which the AWS SDKs find it and no real account.

    `kubeconfig` is that of the control plane which plays EKS, where there is one.
    """
    text = stack_file.read_text()
    region, cluster = _region(text), existing_cluster(text)
    api = AwsStandIn()
    try:
        ec2 = boto3.client(
            "ec2", region_name=region, endpoint_url=api.url, aws_access_key_id=_KEY, aws_secret_access_key=_KEY
        )
        for action, reply in replies(text, _zone_ids(ec2)).items():
            api.reply(action, reply)
        if cluster and kubeconfig:
            api.reply(f"/clusters/{cluster}", _found_cluster(cluster, text, kubeconfig, _subnet_ids(ec2)))
        nowhere = str(stack_file.parent / "no-aws-configuration")
        yield {
            "AWS_ENDPOINT_URL": api.url,
            "AWS_ACCESS_KEY_ID": _KEY,
            "AWS_SECRET_ACCESS_KEY": _KEY,
            "AWS_REGION": region,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": nowhere,
            "AWS_SHARED_CREDENTIALS_FILE": nowhere,
            "NO_PROXY": "127.0.0.1",
            **({CONTROL_PLANE_VARIABLE: str(kubeconfig)} if kubeconfig else {}),
        }
    finally:
        api.close()


def existing_cluster(stack_file: str) -> str | None:
    """The name of the EKS cluster that the stack finds."""
    cluster = _section(stack_file, "neuron-serving:cluster", {})
    return cluster.get("name") if cluster.get("mode") == "existing" else None


def other_stack(stack_file: str) -> str | None:
    """The stack, as in organization/project/stack, whose cluster the stack takes."""
    cluster = _section(stack_file, "neuron-serving:cluster", {})
    return cluster.get("stack") if cluster.get("mode") == "stack" else None


def replies(stack_file: str, zone_ids: Sequence[str] = ("usw2-az1",)) -> Mapping[str, Reply]:
    """What moto cannot answer, by action, so that it fits the text of a stack file in a region with these zones."""
    minors = _kubernetes_versions(stack_file)
    releases = re.findall(r"\bamiRelease:\s*[\"']?([\d.]+-)?(20\d{6})\b", stack_file)
    addons = [_ADDON_VERSION, *sorted(set(re.findall(r"\bv\d+\.\d+\.\d+-eksbuild\.\d+\b", stack_file)))]
    reserved = _reservations(stack_file, zone_ids[0])
    return {
        "DescribeAddonVersions": json_reply(_addons(minors, addons)),
        "DescribeCapacityReservations": ec2_page("DescribeCapacityReservations", "capacityReservationSet", reserved),
        "GetParameters": json_reply({"Parameters": list(_ami_parameters(minors, releases)), "InvalidParameters": []}),
        "GetServiceQuota": json_reply({"Quota": {"Value": QUOTA_VCPUS}}),
    }


def _section(stack_file: str, key: str, default: Any) -> Any:
    return (yaml.safe_load(stack_file).get("config") or {}).get(key) or default


def _region(stack_file: str) -> str:
    return str(_section(stack_file, "aws:region", _REGION))


def _zone_ids(ec2: "EC2Client") -> list[str]:
    return [zone["ZoneId"] for zone in ec2.describe_availability_zones()["AvailabilityZones"]]


def _subnet_ids(ec2: "EC2Client") -> list[str]:
    """The subnets that moto has in every region: one in each zone."""
    return [subnet["SubnetId"] for subnet in ec2.describe_subnets()["Subnets"]]


def _reservations(stack_file: str, zone_id: str) -> list[dict[str, object]]:
    """The reserved capacity that node groups name, as large as they want it."""
    groups = _section(stack_file, "neuron-serving:nodeGroups", [])
    return [
        {
            "capacityReservationId": group["create"]["reservationId"],
            "instanceType": group["instanceType"],
            "totalInstanceCount": group["nodes"],
            "availabilityZoneId": zone_id,
            "reservationType": group["create"].get("purchase", "capacity-reservation"),
        }
        for group in groups
        if "reservationId" in (group.get("create") or {})
    ]


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


def _found_cluster(name: str, stack_file: str, kubeconfig: Path, subnet_ids: list[str]) -> Reply:
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
