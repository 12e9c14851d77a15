"""Which version of an EKS add-on a cluster gets: the pinned one if EKS offers it, else EKS's default."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from components.faults import ConfigurationError, Fault
from components.lookups.aws import Aws, AwsError

if TYPE_CHECKING:
    from mypy_boto3_eks.type_defs import AddonVersionInfoTypeDef

# How EKS says that it knows no such add-on or no such Kubernetes version.
_UNKNOWN = frozenset({"InvalidParameterException", "ResourceNotFoundException"})


@dataclass(frozen=True)
class AddonVersion:
    """One version of an add-on, as in v1.20.4-eksbuild.2; `default` is EKS's choice for the Kubernetes version."""

    addon: str
    version: str
    default: bool


def addon_versions(aws: Aws, addon: str, kubernetes_version: str) -> tuple[AddonVersion, ...]:
    """The versions that EKS offers for a Kubernetes minor, the newest first; none if it does not know the add-on."""
    try:
        with aws.asking("eks:DescribeAddonVersions"):
            pages = aws.eks.get_paginator("describe_addon_versions").paginate(
                addonName=addon, kubernetesVersion=kubernetes_version
            )
            infos = [info for page in pages for one in page["addons"] for info in one["addonVersions"]]
    except AwsError as error:
        if error.code in _UNKNOWN:
            return ()
        raise
    found = [
        AddonVersion(addon, info["addonVersion"], _is_default(info, kubernetes_version))
        for info in infos
        if "addonVersion" in info
    ]
    return tuple(sorted(found, key=lambda one: _numbers(one.version), reverse=True))


def addon_version(aws: Aws, path: str, addon: str, kubernetes_version: str, pin: str | None = None) -> AddonVersion:
    """The pinned version, else EKS's default, else the newest; ConfigurationError where there is no such version."""
    offered = addon_versions(aws, addon, kubernetes_version)
    if not offered:
        fault = Fault(
            path,
            f"{addon} for Kubernetes {kubernetes_version}, which EKS does not offer in {aws.region}",
            "an add-on that EKS offers for that version",
            "correct the name, or leave the add-on out",
        )
        raise ConfigurationError([fault])
    preferred = next((one for one in offered if one.default), offered[0])
    if pin is None:
        return preferred
    pinned = next((one for one in offered if one.version == pin), None)
    if pinned is None:
        versions = ", ".join(one.version for one in offered[:5])
        fault = Fault(
            path,
            f"{addon} {pin}, which EKS does not offer for Kubernetes {kubernetes_version}",
            f"{versions}{', ...' if len(offered) > 5 else ''}",
            f"set {preferred.version}",
        )
        raise ConfigurationError([fault])
    return pinned


def _is_default(info: "AddonVersionInfoTypeDef", kubernetes_version: str) -> bool:
    return any(
        one.get("defaultVersion", False) and one.get("clusterVersion") == kubernetes_version
        for one in info.get("compatibilities", [])
    )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))
