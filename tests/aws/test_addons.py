"""Versions of add-ons, over real HTTP: moto knows none, the documents have the form of EKS."""

import pytest

from components.faults import ConfigurationError
from components.lookups.addons import AddonVersion, addon_version, addon_versions
from components.lookups.aws import Aws, AwsError
from stand_ins.aws_api import AwsStandIn, Reply, json_error, json_reply
from tests.aws.conftest import faults


def addon_page(*versions: tuple[str, bool], next_token: str | None = None) -> dict[str, object]:
    """A page of DescribeAddonVersions for coredns on Kubernetes 1.36; with each version, whether it is the default."""
    infos = [
        {
            "addonVersion": version,
            "compatibilities": [{"clusterVersion": "1.36", "platformVersions": ["*"], "defaultVersion": default}],
        }
        for version, default in versions
    ]
    page: dict[str, object] = {"addons": [{"addonName": "coredns", "addonVersions": infos}]}
    return page | ({"nextToken": next_token} if next_token else {})


@pytest.fixture
def coredns(stand_in: AwsStandIn, aws: Aws) -> Aws:
    """An account whose EKS offers three versions of coredns in two pages, the default in the second."""
    first = json_reply(addon_page(("v1.13.2-eksbuild.9", False), ("v1.13.2-eksbuild.10", False), next_token="more"))  # noqa: S106
    stand_in.reply("DescribeAddonVersions", first, json_reply(addon_page(("v1.13.1-eksbuild.1", True))))
    return aws


def test_versions_are_sorted_by_their_numbers_over_all_pages(coredns: Aws) -> None:
    assert [one.version for one in addon_versions(coredns, "coredns", "1.36")] == [
        "v1.13.2-eksbuild.10",
        "v1.13.2-eksbuild.9",
        "v1.13.1-eksbuild.1",
    ]


def test_without_a_pin_the_default_is_taken(coredns: Aws) -> None:
    expected = AddonVersion("coredns", "v1.13.1-eksbuild.1", default=True)
    assert addon_version(coredns, "cluster.addons.coredns", "coredns", "1.36") == expected


def test_a_pin_that_is_offered_is_taken(coredns: Aws) -> None:
    found = addon_version(coredns, "cluster.addons.coredns", "coredns", "1.36", "v1.13.2-eksbuild.9")
    assert (found.version, found.default) == ("v1.13.2-eksbuild.9", False)


def test_a_pin_that_is_not_offered_is_shown_beside_those_that_are(coredns: Aws) -> None:
    with pytest.raises(ConfigurationError) as error:
        addon_version(coredns, "cluster.addons.coredns", "coredns", "1.36", "v1.9.3-eksbuild.1")
    assert faults(error) == (
        "cluster.addons.coredns: found coredns v1.9.3-eksbuild.1, which EKS does not offer for Kubernetes 1.36; "
        "allowed: v1.13.2-eksbuild.10, v1.13.2-eksbuild.9, v1.13.1-eksbuild.1; fix: set v1.13.1-eksbuild.1"
    )


@pytest.mark.parametrize(
    "reply",
    [
        json_reply({"addons": []}),
        json_error("InvalidParameterException", "Addon specified is not supported"),
    ],
)
def test_an_add_on_that_eks_does_not_know_is_named(stand_in: AwsStandIn, aws: Aws, reply: Reply) -> None:
    stand_in.reply("DescribeAddonVersions", reply)
    with pytest.raises(
        ConfigurationError, match=r"cluster.addons: found cordns for Kubernetes 1.36, which EKS does not"
    ):
        addon_version(aws, "cluster.addons", "cordns", "1.36")


def test_a_refusal_is_not_mistaken_for_an_unknown_add_on(stand_in: AwsStandIn, aws: Aws) -> None:
    stand_in.reply("DescribeAddonVersions", json_error("AccessDeniedException", "not authorized", 403))
    with pytest.raises(AwsError, match="allow the IAM action eks:DescribeAddonVersions"):
        addon_version(aws, "cluster.addons", "coredns", "1.36")
