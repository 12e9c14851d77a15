"""Which AMI release a node group gets: the pinned one if it exists, else the one that EKS recommends now."""

import re
from dataclasses import dataclass

from components.faults import ConfigurationError, Fault
from components.lookups.aws import Aws, AwsError
from neuron.ami import AMI_NAME_PREFIX, AmiRelease, days_between, parse_pin, parse_release
from neuron.errors import ImpossibleInputError

RECOMMENDED = "recommended"


@dataclass(frozen=True)
class Ami:
    """An AMI of this region and the release that it belongs to."""

    image_id: str
    release: AmiRelease


def recommended_ami(aws: Aws, path: str, kubernetes_version: str) -> Ami:
    """The AMI that EKS recommends now for a Kubernetes minor; ConfigurationError if it has none for it.

    What it recommends moves by itself, past drivers that an image line accepts: pin it once it is known.
    """
    values = _parameters(aws, kubernetes_version, RECOMMENDED)
    if "image_id" not in values or "release_version" not in values:
        fault = Fault(
            path,
            f"Kubernetes {kubernetes_version}",
            f"a version for which EKS offers a Neuron AMI in {aws.region}",
            "set a version that EKS supports",
        )
        raise ConfigurationError([fault])
    try:
        return Ami(values["image_id"], parse_release(values["release_version"]))
    except ImpossibleInputError as error:
        raise AwsError(f"ssm:GetParameters in {aws.region}: a release name of an unknown form: {error}") from None


def pinned_ami(aws: Aws, path: str, kubernetes_version: str, release_version: str) -> Ami:
    """The AMI of a release, by version or date; ConfigurationError, naming the nearest, if there is none."""
    release = _parse(path, kubernetes_version, release_version)
    values = _parameters(aws, kubernetes_version, release.ami_name)
    if release_version == release.date and "image_id" in values:
        return Ami(values["image_id"], _release_of_date(aws, path, release, values.get("release_version")))
    # The date alone finds the AMI; the patch version before it must be right as well, or EKS refuses the pin.
    actual_version = values.get("release_version", release_version)
    if "image_id" in values and actual_version == release_version:
        return Ami(values["image_id"], release)
    nearest = actual_version if "image_id" in values else _nearest(aws, release)
    fault = Fault(
        path,
        f"{release_version}, which does not exist",
        f"a release of the Neuron AMI for Kubernetes {kubernetes_version} in {aws.region}",
        f"set {nearest}, the nearest" if nearest else "leave it out: the preview names the recommended release",
    )
    raise ConfigurationError([fault])


def _release_of_date(aws: Aws, path: str, release: AmiRelease, version: str | None) -> AmiRelease:
    """The release with its version, which EKS wants for a node group."""
    if version is None:
        found = f"{release}, of which {aws.region} publishes the AMI but not the version"
        raise ConfigurationError([Fault(path, found, "a version such as 1.36.2-20260714", "pin the version")])
    return parse_release(version)


def _parse(path: str, kubernetes_version: str, release_version: str) -> AmiRelease:
    allowed = f"a release such as {kubernetes_version}.2-20260714, of the cluster's Kubernetes {kubernetes_version}"
    try:
        release = parse_pin(release_version, kubernetes_version)
    except ImpossibleInputError:
        raise ConfigurationError([Fault(path, release_version, allowed, "correct the release")]) from None
    if release.kubernetes_version != kubernetes_version:
        raise ConfigurationError([Fault(path, release_version, allowed, "pin a release of that version")])
    return release


def _folder(kubernetes_version: str) -> str:
    """The public parameters of the AMI: below it `recommended` and one folder for each release, named as the AMI."""
    return f"/aws/service/eks/optimized-ami/{kubernetes_version}/amazon-linux-2023/x86_64/neuron"


def _parameters(aws: Aws, kubernetes_version: str, entry: str) -> dict[str, str]:
    """The image id and release version of an entry, as far as they exist."""
    prefix = f"{_folder(kubernetes_version)}/{entry}/"
    with aws.asking("ssm:GetParameters"):
        answer = aws.ssm.get_parameters(Names=[f"{prefix}image_id", f"{prefix}release_version"])
    return {one["Name"].removeprefix(prefix): one["Value"] for one in answer["Parameters"]}


def _nearest(aws: Aws, release: AmiRelease) -> str | None:
    """The existing release whose date is nearest, the newer of two; None where none is found or may be listed."""
    try:
        dates = _dates(aws, release.kubernetes_version)
        if not dates:
            return None
        date = min(sorted(dates, reverse=True), key=lambda date: days_between(date, release.date))
        entry = f"{AMI_NAME_PREFIX}{release.kubernetes_version}-v{date}"
        return _parameters(aws, release.kubernetes_version, entry).get("release_version", f"the release of {date}")
    except AwsError:
        return None


def _dates(aws: Aws, kubernetes_version: str) -> set[str]:
    """The dates of all releases for a Kubernetes minor."""
    folder = _folder(kubernetes_version)
    with aws.asking("ssm:GetParametersByPath"):
        pages = aws.ssm.get_paginator("get_parameters_by_path").paginate(Path=folder, Recursive=True)
        names = [one["Name"] for page in pages for one in page["Parameters"]]
    dated = re.compile(re.escape(f"{folder}/{AMI_NAME_PREFIX}{kubernetes_version}-v") + r"(\d{8})/")
    return {match[1] for name in names if (match := dated.match(name))}
