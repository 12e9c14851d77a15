"""The stand-in for AWS, and an account whose clients ask it and nothing else."""

from collections.abc import Iterator

import boto3
import pytest
from moto.core.utils import utcnow
from moto.moto_api._internal.models import moto_api_backend
from moto.ssm.models import Parameter, ssm_backends

from components.faults import ConfigurationError
from components.lookups.aws import Aws
from stand_ins.aws_api import AwsStandIn, ec2_page

# The account that moto answers for.
ACCOUNT = "123456789012"
REGION = "us-west-2"
NO_RESERVATIONS = ec2_page("DescribeCapacityReservations", "capacityReservationSet", [])


@pytest.fixture(scope="session")
def server() -> Iterator[AwsStandIn]:
    server = AwsStandIn()
    yield server
    server.close()


@pytest.fixture(scope="session")
def environment(server: AwsStandIn, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """An environment in which boto3 finds the stand-in and no real account."""
    home = tmp_path_factory.mktemp("home")
    values = {
        "AWS_ENDPOINT_URL": server.url,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": str(home / "config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(home / "credentials"),
        "NO_PROXY": "127.0.0.1",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_REGION"):
            patch.delenv(name, raising=False)
        for name, value in values.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="session")
def account(environment: None) -> Aws:  # noqa: ARG001 - where boto3 looks
    """The account in us-west-2, which tries each call twice; one for all tests, as clients are slow to make."""
    return Aws(boto3.Session(), attempts=2)


@pytest.fixture
def stand_in(
    server: AwsStandIn,
    environment: None,  # noqa: ARG001 - where boto3 looks
    monkeypatch: pytest.MonkeyPatch,
) -> AwsStandIn:
    """The server without replies and counts of earlier tests, in an account without capacity reservations."""
    # Tests of other folders, run earlier in this process, have servers of their own.
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    server.reset()
    server.reply("DescribeCapacityReservations", NO_RESERVATIONS)
    return server


@pytest.fixture
def aws(stand_in: AwsStandIn, account: Aws) -> Aws:  # noqa: ARG001 - without replies of earlier tests
    """The account, for tests that look at what AWS itself has."""
    return account


@pytest.fixture
def empty_account(aws: Aws) -> Aws:
    """The account with nothing in it, for tests that put something there; moto takes its time for that."""
    moto_api_backend.reset()
    return aws


@pytest.fixture
def vpc_id(empty_account: Aws) -> str:
    """A VPC with a public subnet in 2a (a route table of its own) and private ones in 2a and 2b (the main table)."""
    ec2 = empty_account.ec2
    vpc_id = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    public, *_ = (
        ec2.create_subnet(VpcId=vpc_id, CidrBlock=f"10.0.{index}.0/24", AvailabilityZone=f"us-west-2{zone}")
        for index, zone in enumerate("aab")
    )
    gateway_id = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway_id, VpcId=vpc_id)
    table_id = ec2.create_route_table(VpcId=vpc_id)["RouteTable"]["RouteTableId"]
    ec2.create_route(RouteTableId=table_id, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway_id)
    ec2.associate_route_table(RouteTableId=table_id, SubnetId=public["Subnet"]["SubnetId"])
    return vpc_id


def put_public_parameter(name: str, value: str) -> None:
    """Put a parameter below /aws/service, which Systems Manager (and so moto) lets nobody do over HTTP."""
    # The class is abstract only in its annotations.
    parameter = Parameter(ACCOUNT, name, value, "String", None, None, None, utcnow(), 1, "text")  # type: ignore[abstract]
    ssm_backends[ACCOUNT][REGION]._parameters[name].append(parameter)


def faults(error: pytest.ExceptionInfo[ConfigurationError]) -> str:
    """The only line of a configuration error."""
    message = str(error.value)
    assert "\n" not in message
    return message
