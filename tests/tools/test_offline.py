"""What an offline preview takes to be so of an account, as the program's look-ups find it."""

from collections.abc import Iterator

import boto3
import pytest

from components.lookups.addons import addon_version
from components.lookups.ami import pinned_ami, recommended_ami
from components.lookups.aws import Aws
from components.lookups.quotas import live_quotas
from neuron.quota import Bucket
from stand_ins.account import replies
from stand_ins.aws_api import AwsStandIn
from tools import offline

STACK_FILE = """
config:
  neuron-serving:cluster:
    version: "1.35"
    addons: {vpc-cni: v1.20.4-eksbuild.2, coredns: default}
  neuron-serving:nodeGroups:
    - create: {amiRelease: "20260625"}
    - create: {amiRelease: 1.35.2-20260714}
"""
INFERENTIA = Bucket("inf", "on-demand")


@pytest.fixture(scope="module")
def account() -> Iterator[Aws]:
    api = AwsStandIn()
    for action, reply in replies(STACK_FILE).items():
        api.reply(action, reply)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", api.url)
        patch.setenv("AWS_ACCESS_KEY_ID", "testing")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        patch.setenv("AWS_DEFAULT_REGION", "us-west-2")
        yield Aws(boto3.Session(), attempts=1)
    api.close()


@pytest.mark.parametrize("pin", ["20260625", "1.35.2-20260714"])
def test_a_pinned_ami_release_exists(account: Aws, pin: str) -> None:
    assert str(pinned_ami(account, "path", "1.35", pin).release).endswith(pin)


def test_there_is_a_recommended_ami(account: Aws) -> None:
    assert recommended_ami(account, "path", "1.35").release.kubernetes_version == "1.35"


def test_a_pinned_add_on_version_exists_and_one_that_is_not_pinned_is_plainly_made_up(account: Aws) -> None:
    pinned = addon_version(account, "path", "vpc-cni", "1.35", "v1.20.4-eksbuild.2")
    assert pinned.version == "v1.20.4-eksbuild.2"
    assert addon_version(account, "path", "coredns", "1.35").version == "v0.0.0-eksbuild.0"


def test_a_quota_is_granted_and_nothing_of_it_is_in_use(account: Aws) -> None:
    quota = live_quotas(account, [INFERENTIA], {})[INFERENTIA]
    assert (quota.vcpus, quota.used_by_others_vcpus) == (128, 0)


def test_the_stack_whose_cluster_is_taken_is_looked_for_in_the_state_of_offline_previews() -> None:
    stack = {"config": {"neuron-serving:cluster": {"mode": "stack", "stack": "acme/neuron-serving/platform"}}}
    config = offline.standing_in(stack)["config"]
    assert config["neuron-serving:cluster"]["stack"] == "organization/neuron-serving/platform"
