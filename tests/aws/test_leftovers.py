"""What is left of a stack, by tags alone, over real HTTP against moto."""

from typing import Any

import pytest

from components.lookups.aws import Aws
from stand_ins.aws_api import AwsStandIn, json_error
from tools.leftovers import Leftover, leftovers, main, render

STACK, CLUSTER = "inf2-prod", "neuron-serving-inf2-prod"
OWN = {"neuron-serving:stack": STACK}
TRUST = "{}"


def vpc(aws: Aws, tags: dict[str, str]) -> str:
    specification: Any = {"ResourceType": "vpc", "Tags": listed(tags)}
    vpc_id = aws.ec2.create_vpc(CidrBlock="10.0.0.0/24", TagSpecifications=[specification])["Vpc"]["VpcId"]
    return f"vpc/{vpc_id}"


def listed(tags: dict[str, str]) -> Any:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def resources(found: list[Leftover]) -> set[str]:
    return {one.arn.split(":", maxsplit=5)[5] for one in found}


def test_what_has_the_stacks_tag_is_left_and_what_only_has_its_name_is_not(empty_account: Aws) -> None:
    mine = vpc(empty_account, OWN)
    vpc(empty_account, {"neuron-serving:stack": "another"})
    vpc(empty_account, {"Name": f"{STACK}-cluster", "neuron-serving:owner": STACK})
    empty_account.iam.create_role(RoleName="anything", AssumeRolePolicyDocument=TRUST, Tags=listed(OWN))
    empty_account.iam.create_role(RoleName=STACK, AssumeRolePolicyDocument=TRUST)
    assert resources(leftovers(empty_account, STACK, None)) == {mine, "role/anything"}


@pytest.mark.parametrize(
    "tag",
    [
        {"elbv2.k8s.aws/cluster": CLUSTER},
        {f"kubernetes.io/cluster/{CLUSTER}": "owned"},
        {"cluster.k8s.amazonaws.com/name": CLUSTER},
    ],
    ids=str,
)
def test_what_controllers_made_is_left_of_a_stack_that_made_its_cluster(
    empty_account: Aws, tag: dict[str, str]
) -> None:
    made = vpc(empty_account, tag)
    vpc(empty_account, {f"kubernetes.io/cluster/{CLUSTER}": "shared"})
    vpc(empty_account, {"elbv2.k8s.aws/cluster": "neuron-serving-inf2"})
    ((left),) = leftovers(empty_account, STACK, CLUSTER)
    assert resources([left]) == {made}
    assert left.tag == "=".join(*tag.items())
    assert leftovers(empty_account, STACK, None) == []


def test_every_page_is_read(empty_account: Aws) -> None:
    made = {vpc(empty_account, OWN) for _ in range(60)}
    assert resources(leftovers(empty_account, STACK, None)) == made


def test_the_table_names_service_resource_and_tag_and_nothing_is_one_line() -> None:
    arn = "arn:aws:s3:::model-cache-0a1b2c3"
    heading, row, last = render([Leftover(arn, "neuron-serving:stack=inf2-prod")], STACK, "us-west-2").splitlines()
    assert heading.split() == ["SERVICE", "RESOURCE", "FOUND", "BY"]
    assert row.split() == ["s3", "model-cache-0a1b2c3", "neuron-serving:stack=inf2-prod"]
    assert last.startswith("1 left of stack inf2-prod in us-west-2. Nothing was changed.")
    assert render([], STACK, "us-west-2") == "nothing in us-west-2 is left of stack inf2-prod"


def test_the_command_says_that_there_is_nothing_and_reads_only(
    empty_account: Aws,  # noqa: ARG001 - the account that is asked
    stand_in: AwsStandIn,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.argv", ["leftovers", STACK])
    assert main() == 0
    assert capsys.readouterr().out == "nothing in us-west-2 is left of stack inf2-prod\n"
    assert set(stand_in.calls) == {"GetResources", "ListRoles"}


def test_a_missing_permission_and_an_unknown_stack_are_one_line_each(
    stand_in: AwsStandIn, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in.reply("GetResources", json_error("AccessDeniedException", "no"))
    monkeypatch.setattr("sys.argv", ["leftovers", STACK])
    assert main() == 1
    assert capsys.readouterr().err.endswith("allow the IAM action tag:GetResources\n")
    monkeypatch.setattr("sys.argv", ["leftovers", "nope"])
    assert main() == 1
    assert capsys.readouterr().err.startswith("error: STACK=nope has no stacks/Pulumi.nope.yaml; the stacks are ")
