"""AMI releases, over real HTTP: which there are, and which pins are faults."""

import pytest

from components.faults import ConfigurationError
from components.lookups.ami import pinned_ami, recommended_ami
from components.lookups.aws import Aws
from components.platform_checks import driver_faults
from neuron.ami import parse_release
from neuron.images import image_line
from stand_ins.aws_api import AwsStandIn, json_error
from tests.aws.conftest import faults, put_public_parameter

FOLDER = "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/neuron"


def put_release(entry: str, version: str, image_id: str) -> None:
    """The parameters of one AMI release, as EKS publishes them."""
    put_public_parameter(f"{FOLDER}/{entry}/image_id", image_id)
    put_public_parameter(f"{FOLDER}/{entry}/release_version", version)


@pytest.fixture
def releases(empty_account: Aws) -> Aws:
    """An account whose region has twelve releases, more than one page of parameters, the newest recommended."""
    for day in range(10, 22):
        version = f"1.36.2-202606{day}"
        put_release(f"amazon-eks-node-al2023-x86_64-neuron-1.36-v202606{day}", version, f"ami-{day}")
    put_release("recommended", "1.36.2-20260621", "ami-21")
    return empty_account


def test_the_recommended_release_is_resolved(releases: Aws) -> None:
    found = recommended_ami(releases, "nodeGroups[0].amiRelease", "1.36")
    assert (found.image_id, str(found.release)) == ("ami-21", "1.36.2-20260621")


def test_a_version_without_a_neuron_ami_is_named(releases: Aws) -> None:
    with pytest.raises(
        ConfigurationError, match=r"^cluster.version: found Kubernetes 1.29; allowed: a version for which"
    ):
        recommended_ami(releases, "cluster.version", "1.29")


def test_a_pinned_release_is_found(releases: Aws) -> None:
    assert pinned_ami(releases, "nodeGroups[0].amiRelease", "1.36", "1.36.2-20260615").image_id == "ami-15"


def test_a_release_that_is_pinned_by_its_date_gets_its_version(releases: Aws) -> None:
    found = pinned_ami(releases, "nodeGroups[0].amiRelease", "1.36", "20260615")
    assert (found.image_id, str(found.release)) == ("ami-15", "1.36.2-20260615")


def test_a_date_whose_version_is_not_published_cannot_be_a_pin(empty_account: Aws) -> None:
    put_public_parameter(f"{FOLDER}/amazon-eks-node-al2023-x86_64-neuron-1.36-v20260615/image_id", "ami-15")
    with pytest.raises(ConfigurationError, match=r"publishes the AMI but not the version; .*; fix: pin the version$"):
        pinned_ami(empty_account, "nodeGroups[0].amiRelease", "1.36", "20260615")


def test_a_pin_whose_version_parameter_is_not_published_is_taken_at_its_word(empty_account: Aws) -> None:
    put_public_parameter(f"{FOLDER}/amazon-eks-node-al2023-x86_64-neuron-1.36-v20260615/image_id", "ami-15")
    assert pinned_ami(empty_account, "nodeGroups[0].amiRelease", "1.36", "1.36.2-20260615").image_id == "ami-15"


@pytest.mark.parametrize(
    ("pin", "nearest"),
    [
        # After the last one, and on the second page of parameters.
        ("1.36.2-20260903", "1.36.2-20260621"),
        ("1.36.2-20260501", "1.36.2-20260610"),
        # The date is right, the patch version is not.
        ("1.36.1-20260615", "1.36.2-20260615"),
        ("20260903", "1.36.2-20260621"),
    ],
)
def test_a_release_that_does_not_exist_is_named_with_the_nearest(releases: Aws, pin: str, nearest: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        pinned_ami(releases, "nodeGroups[0].amiRelease", "1.36", pin)
    assert faults(error) == (
        f"nodeGroups[0].amiRelease: found {pin}, which does not exist; allowed: a release of the Neuron AMI for "
        f"Kubernetes 1.36 in us-west-2; fix: set {nearest}, the nearest"
    )


def test_without_permission_to_list_the_nearest_is_left_out(stand_in: AwsStandIn, releases: Aws) -> None:
    stand_in.reply("GetParametersByPath", json_error("AccessDeniedException", "not authorized"))
    with pytest.raises(ConfigurationError, match="fix: leave it out"):
        pinned_ami(releases, "nodeGroups[0].amiRelease", "1.36", "1.36.2-20260903")


@pytest.mark.parametrize("pin", ["latest", "1.36.2-20269999", "1.35.6-20260615"])
def test_a_pin_of_another_form_or_version_asks_nobody(stand_in: AwsStandIn, releases: Aws, pin: str) -> None:
    with pytest.raises(ConfigurationError, match=f"found {pin}; allowed: a release such as 1.36.2-20260714"):
        pinned_ami(releases, "nodeGroups[0].amiRelease", "1.36", pin)
    assert not stand_in.calls


def test_a_release_whose_driver_refuses_the_image_is_a_fault_with_the_last_good_one() -> None:
    (fault,) = driver_faults("nodeGroups[0].amiRelease", image_line("nxdi-0.13"), parse_release("1.36.2-20260714"))
    assert str(fault) == (
        "nodeGroups[0].amiRelease: found AMI release 1.36.2-20260714 has driver 2.29.0, nxdi-0.13 needs 2.28 or older; "
        "allowed: a release with a driver in that range; fix: pin the release of 20260625, the newest known one"
    )


@pytest.mark.parametrize("version", ["1.36.2-20260625", "1.36.3-20260903"])
def test_a_good_or_an_unknown_driver_is_no_fault(version: str) -> None:
    assert driver_faults("path", image_line("nxdi-0.13"), parse_release(version)) == ()
