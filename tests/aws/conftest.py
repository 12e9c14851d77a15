"""The stand-in for AWS, and an account whose clients ask it and nothing else."""

from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from moto.core.utils import utcnow
from moto.moto_api._internal.models import moto_api_backend
from moto.ssm.models import Parameter, ssm_backends

from components.lookups.aws import Aws
from tests.aws.stand_in import AwsStandIn, ec2_page

# The account that moto answers for.
ACCOUNT = "123456789012"
REGION = "us-west-2"
NO_RESERVATIONS = ec2_page("DescribeCapacityReservations", "capacityReservationSet", [])


@pytest.fixture(scope="session")
def server() -> Iterator[AwsStandIn]:
    server = AwsStandIn()
    yield server
    server.close()


@pytest.fixture
def stand_in(server: AwsStandIn, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AwsStandIn:
    """The server without a past, and an environment in which boto3 finds it and no real account."""
    server.reset()
    server.reply("DescribeCapacityReservations", NO_RESERVATIONS)
    moto_api_backend.reset()
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    environment = {
        "AWS_ENDPOINT_URL": server.url,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": str(tmp_path / "config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"),
        "NO_PROXY": "127.0.0.1",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return server


@pytest.fixture
def aws(stand_in: AwsStandIn) -> Aws:  # noqa: ARG001 - it makes the environment
    """The account in us-west-2, which tries each call twice."""
    return Aws(boto3.Session(), attempts=2)


def put_public_parameter(name: str, value: str) -> None:
    """Put a parameter below /aws/service, which Systems Manager (and so moto) lets nobody do over HTTP."""
    # The class is abstract only in its annotations.
    parameter = Parameter(ACCOUNT, name, value, "String", None, None, None, utcnow(), 1, "text")  # type: ignore[abstract]
    ssm_backends[ACCOUNT][REGION]._parameters[name].append(parameter)
