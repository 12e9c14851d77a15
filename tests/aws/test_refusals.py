"""Every way in which AWS gives no answer: one line that names the call, the cause and the fix, and no traceback."""

import socket
from pathlib import Path

import boto3
import pytest

from components.lookups.ami import recommended_ami
from components.lookups.aws import Aws, AwsError, connect
from components.lookups.identity import Identity, caller_identity
from components.lookups.quotas import live_quotas
from components.lookups.zones import subnets_of_vpc, zone_ids_offering
from neuron.quota import Bucket
from stand_ins.aws_api import MOTO, AwsStandIn, Reply, ec2_error, json_error, query_error
from tests.aws.conftest import ACCOUNT

THROTTLED = ec2_error("RequestLimitExceeded", "Request limit exceeded.", 503)


def one_line(error: pytest.ExceptionInfo[AwsError]) -> str:
    """The message, which is one line and shows no exception that it came from."""
    message = str(error.value)
    assert "\n" not in message
    assert error.value.__context__ is None or error.value.__suppress_context__
    return message


def test_a_good_account_says_who_is_asking(aws: Aws) -> None:
    assert caller_identity(aws) == Identity(ACCOUNT, f"arn:aws:sts::{ACCOUNT}:user/moto")


def test_throttling_that_ends_is_waited_for(stand_in: AwsStandIn, aws: Aws) -> None:
    stand_in.reply("DescribeInstanceTypeOfferings", THROTTLED, MOTO)
    assert zone_ids_offering(aws, "nodeGroups[0].instanceType", "trn1.2xlarge")
    assert stand_in.calls["DescribeInstanceTypeOfferings"] == 2


def test_throttling_that_does_not_end_is_said_after_the_last_attempt(stand_in: AwsStandIn, aws: Aws) -> None:
    stand_in.reply("DescribeSubnets", THROTTLED)
    with pytest.raises(AwsError) as error:
        subnets_of_vpc(aws, "vpc-1")
    assert one_line(error) == (
        "ec2:DescribeSubnets in us-west-2: throttled at each of 2 attempts (RequestLimitExceeded); "
        "wait a minute and try again"
    )
    assert stand_in.calls["DescribeSubnets"] == 2


def test_throttling_of_a_json_service_is_the_same(stand_in: AwsStandIn, aws: Aws) -> None:
    stand_in.reply("GetParameters", json_error("ThrottlingException", "Rate exceeded"))
    with pytest.raises(AwsError, match=r"^ssm:GetParameters in us-west-2: throttled at each of 2 attempts"):
        recommended_ami(aws, "cluster.version", "1.36")


def test_a_missing_permission_is_named_and_not_retried(stand_in: AwsStandIn, aws: Aws) -> None:
    stand_in.reply("DescribeSubnets", ec2_error("UnauthorizedOperation", "You are not authorized. Encoded: abc", 403))
    with pytest.raises(AwsError) as error:
        subnets_of_vpc(aws, "vpc-1")
    assert one_line(error) == (
        "ec2:DescribeSubnets in us-west-2: not permitted, no policy allows it (UnauthorizedOperation); "
        "allow the IAM action ec2:DescribeSubnets"
    )
    assert stand_in.calls["DescribeSubnets"] == 1


def test_a_denial_by_an_organisations_policy_is_told_from_a_missing_permission(stand_in: AwsStandIn, aws: Aws) -> None:
    message = "User is not authorized to perform: ssm:GetParameters with an explicit deny in a service control policy"
    stand_in.reply("GetParameters", json_error("AccessDeniedException", message))
    with pytest.raises(AwsError, match="not permitted, a policy denies it"):
        recommended_ami(aws, "cluster.version", "1.36")


def test_a_missing_permission_on_the_last_of_several_calls_names_that_call(stand_in: AwsStandIn, aws: Aws) -> None:
    stand_in.reply("GetServiceQuota", json_error("AccessDeniedException", "not authorized"))
    with pytest.raises(AwsError, match="allow the IAM action servicequotas:GetServiceQuota"):
        live_quotas(aws, [Bucket("trn", "on-demand")], {})


@pytest.mark.parametrize(
    ("action", "reply"),
    [
        (
            "GetCallerIdentity",
            query_error("ExpiredToken", "The security token included in the request is expired", 403),
        ),
        ("GetCallerIdentity", query_error("RequestExpired", "Request has expired.", 400)),
    ],
)
def test_expired_credentials_are_said_to_be_expired(stand_in: AwsStandIn, aws: Aws, action: str, reply: Reply) -> None:
    stand_in.reply(action, reply)
    with pytest.raises(AwsError) as error:
        caller_identity(aws)
    assert "sts:GetCallerIdentity in us-west-2: the AWS credentials have expired; log in again" in one_line(error)


def test_an_expired_token_is_recognised_at_a_json_service(stand_in: AwsStandIn, aws: Aws) -> None:
    stand_in.reply("GetParameters", json_error("ExpiredTokenException", "The security token is expired"))
    with pytest.raises(AwsError, match="the AWS credentials have expired"):
        recommended_ami(aws, "cluster.version", "1.36")


def test_keys_that_aws_does_not_know_are_told_from_expired_ones(stand_in: AwsStandIn, aws: Aws) -> None:
    stand_in.reply("GetCallerIdentity", query_error("InvalidClientTokenId", "The token is invalid.", 403))
    with pytest.raises(
        AwsError, match=r"does not accept the credentials; check AWS_PROFILE .*\(InvalidClientTokenId\)"
    ):
        caller_identity(aws)


def test_any_other_error_is_passed_on_in_one_line(stand_in: AwsStandIn, aws: Aws) -> None:
    stand_in.reply("DescribeSubnets", ec2_error("InvalidParameterValue", "vpc-1 is\n no id", 400))
    with pytest.raises(AwsError) as error:
        subnets_of_vpc(aws, "vpc-1")
    assert one_line(error).endswith(
        "(InvalidParameterValue) when calling the DescribeSubnets operation: vpc-1 is no id"
    )
    assert error.value.code == "InvalidParameterValue"


@pytest.mark.usefixtures("stand_in")
def test_no_credentials_are_said_to_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(AwsError) as error:
        caller_identity(connect())
    assert "no AWS credentials were found; log in (aws sso login), set AWS_PROFILE" in one_line(error)


@pytest.mark.usefixtures("stand_in")
def test_half_a_key_is_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(AwsError, match="no AWS credentials were found"):
        caller_identity(connect())


@pytest.mark.usefixtures("stand_in")
def test_a_login_that_fails_does_not_show_what_its_program_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config"
    config.write_text(
        "[profile p]\ncredential_process = sh -c 'echo secret-access-key >&2; exit 1'\n", encoding="utf-8"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with pytest.raises(AwsError) as error:
        caller_identity(connect(profile="p"))
    assert "the AWS credentials could not be fetched; log in again" in one_line(error)
    assert "secret" not in one_line(error)


@pytest.mark.usefixtures("stand_in")
def test_no_region_says_where_to_set_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    with pytest.raises(AwsError) as error:
        connect()
    assert one_line(error) == "no AWS region is set; set aws:region in the stack file, or AWS_REGION"
    assert connect("eu-west-1").region == "eu-west-1"
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    assert connect().region == "eu-central-1"


@pytest.mark.usefixtures("stand_in")
def test_a_profile_that_does_not_exist_is_named() -> None:
    with pytest.raises(AwsError) as error:
        connect(profile="no-such-profile")
    assert "The config profile (no-such-profile) could not be found; check AWS_PROFILE" in one_line(error)


@pytest.mark.usefixtures("stand_in")
def test_an_endpoint_that_cannot_be_reached_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        with pytest.raises(AwsError) as error:
            caller_identity(Aws(boto3.Session(), attempts=1))
    assert one_line(error) == (
        f'sts:GetCallerIdentity in us-west-2: Could not connect to the endpoint URL: "{url}/"; '
        "check the region's name, the network and the proxy"
    )


def test_a_proxys_login_page_is_told_from_an_answer(stand_in: AwsStandIn, aws: Aws) -> None:
    stand_in.reply("GetCallerIdentity", Reply("<html><p>Log in to the network</html>", "text/html"))
    with pytest.raises(
        AwsError, match="the answer is not from AWS; check the region's name, the network and the proxy"
    ):
        caller_identity(aws)


@pytest.mark.usefixtures("stand_in")
def test_a_region_that_is_no_name_is_refused_in_one_line() -> None:
    with pytest.raises(AwsError, match="us west 2"):
        caller_identity(connect("us west 2"))
