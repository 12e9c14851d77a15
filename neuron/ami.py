"""Releases of the EKS-optimized Amazon Linux 2023 Neuron AMI, the driver in each, and which image lines run on it.

Source: the changelog of awslabs/amazon-eks-ami, read to release v20260714.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Literal

from neuron.errors import ImpossibleInputError
from neuron.images import ImageLine

AMI_TYPE = "AL2023_x86_64_NEURON"
AMI_NAME_PREFIX = "amazon-eks-node-al2023-x86_64-neuron-"

# aws-neuronx-dkms by the dates of the releases that carry it; every Kubernetes version of a release has the same.
_DRIVERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "2.22.2": ("20250627", "20250704", "20250715"),
        "2.23.9": ("20250807", "20250813", "20250819", "20250821", "20250829", "20250904", "20250915"),
        "2.24.7": (
            *("20250920", "20251002", "20251007", "20251016", "20251023", "20251029"),
            *("20251108", "20251112", "20251120", "20251209", "20251217"),
        ),
        "2.25.4": (
            *("20260107", "20260114", "20260116", "20260120", "20260128", "20260129"),
            *("20260209", "20260224"),
        ),
        "2.26.5": ("20260304", "20260311"),
        "2.26.10": ("20260318", "20260403"),
        "2.27.4": ("20260409", "20260415", "20260423", "20260505"),
        "2.28.0": ("20260610", "20260618", "20260625"),
        "2.29.0": ("20260714",),
    }
)
DRIVER_OF_DATE: Mapping[str, str] = MappingProxyType(
    {date: driver for driver, dates in _DRIVERS.items() for date in dates}
)
LAST_RECORDED_DATE = max(DRIVER_OF_DATE)

_DATE = "%Y%m%d"
_DATE_ALONE = re.compile(r"\d{8}", re.ASCII)
_RELEASE = re.compile(r"(?P<kubernetes>1\.\d+)\.\d+-(?P<date>\d{8})", re.ASCII)


@dataclass(frozen=True)
class AmiRelease:
    """A release as EKS names it: `version` such as 1.36.2-20260714, the Kubernetes minor and the date in it.

    Of a release that is known by its date alone, `version` is that date until it is looked up.
    """

    version: str
    kubernetes_version: str
    date: str

    @property
    def ami_name(self) -> str:
        """The AMI's name, which is also its place in the Systems Manager parameters."""
        return f"{AMI_NAME_PREFIX}{self.kubernetes_version}-v{self.date}"

    @property
    def alias(self) -> str:
        """The release in an EC2NodeClass; Karpenter picks the Neuron image for Neuron instance types by itself."""
        return f"al2023@v{self.date}"

    def __str__(self) -> str:
        """The version."""
        return self.version


def parse_release(version: str) -> AmiRelease:
    """Read a release version such as 1.36.2-20260714; ImpossibleInputError for anything else."""
    match = _RELEASE.fullmatch(version)
    if match is None or not _is_date(match["date"]):
        raise ImpossibleInputError(f"found {version!r}; allowed: a release version such as 1.36.2-20260714")
    return AmiRelease(version, match["kubernetes"], match["date"])


def parse_pin(pin: str, kubernetes_version: str) -> AmiRelease:
    """Read a pinned release: a version such as 1.36.2-20260714 or its date alone; ImpossibleInputError for the rest.

    One date is one release, with one driver, of all Kubernetes minors; `kubernetes_version` says which is meant.
    """
    if _DATE_ALONE.fullmatch(pin) and _is_date(pin):
        return AmiRelease(pin, kubernetes_version, pin)
    return parse_release(pin)


def days_between(one: str, other: str) -> int:
    """Days between the dates of two releases."""
    return abs((datetime.strptime(one, _DATE) - datetime.strptime(other, _DATE)).days)


def driver_of(release: AmiRelease) -> str | None:
    """The Neuron driver in a release; None where no source that was read says it."""
    return DRIVER_OF_DATE.get(release.date)


@dataclass(frozen=True)
class Compatibility:
    """Whether an image line runs on a release's driver, and why; `verdict` is `unknown` where a fact is missing."""

    verdict: Literal["compatible", "incompatible", "unknown"]
    reason: str


def compatible(line: ImageLine, release: AmiRelease) -> Compatibility:
    """Judge the line's runtime against the driver of the release. An unknown driver is no reason to refuse."""
    driver = driver_of(release)
    if driver is None:
        return Compatibility(
            "unknown",
            f"the driver of AMI release {release} is not recorded here (the last recorded release is "
            f"v{LAST_RECORDED_DATE} with driver {DRIVER_OF_DATE[LAST_RECORDED_DATE]})",
        )
    if line.minimum_driver is None and line.maximum_driver is None:
        return Compatibility("unknown", f"AMI release {release} has driver {driver}, {line.name} has no known bounds")
    bounds = _bounds(line)
    if not _admits(line, driver):
        return Compatibility("incompatible", f"AMI release {release} has driver {driver}, {line.name} needs {bounds}")
    return Compatibility("compatible", f"AMI release {release} has driver {driver}, {line.name} accepts {bounds}")


def newest_compatible_date(line: ImageLine) -> str | None:
    """The date of the newest recorded release whose driver is in the line's bounds; None if none is."""
    return max((date for date, driver in DRIVER_OF_DATE.items() if _admits(line, driver)), default=None)


def _is_date(text: str) -> bool:
    try:
        datetime.strptime(text, _DATE)
    except ValueError:
        return False
    return True


def _admits(line: ImageLine, driver: str) -> bool:
    """Bounds are of two numbers, so that 2.28 as a maximum admits every 2.28.x."""
    number = _two_numbers(driver)
    at_least = line.minimum_driver is None or number >= _two_numbers(line.minimum_driver)
    at_most = line.maximum_driver is None or number <= _two_numbers(line.maximum_driver)
    return at_least and at_most


def _bounds(line: ImageLine) -> str:
    if line.maximum_driver is None:
        return f"{line.minimum_driver} or newer"
    if line.minimum_driver is None:
        return f"{line.maximum_driver} or older"
    return f"{line.minimum_driver} to {line.maximum_driver}"


def _two_numbers(version: str) -> tuple[int, int]:
    major, minor, *_ = version.split(".")
    return int(major), int(minor)
