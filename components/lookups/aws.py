"""The account that look-ups ask: its clients, and every way not to get an answer as one clear line."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

import boto3
from botocore import exceptions
from botocore.config import Config
from botocore.parsers import ResponseParserError

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_eks import EKSClient
    from mypy_boto3_iam import IAMClient
    from mypy_boto3_resourcegroupstaggingapi import ResourceGroupsTaggingAPIClient
    from mypy_boto3_service_quotas import ServiceQuotasClient
    from mypy_boto3_ssm import SSMClient
    from mypy_boto3_sts import STSClient

# Tries of one call, the first included; between them boto3 waits at most 1, 2, 4 and 8 s.
ATTEMPTS = 5
CONNECT_TIMEOUT_SECONDS = 5
READ_TIMEOUT_SECONDS = 20
LONGEST_MESSAGE_CHARACTERS = 300

_LOG_IN = "log in again (aws sso login, or new keys)"
_NEW_KEYS = "check AWS_PROFILE and the keys in use"
_CHECK_NETWORK = "check the region's name, the network and the proxy"

# Failures before AWS answers: the first line whose kinds match. None as the cause: the error's own text.
_NO_ANSWER: tuple[tuple[tuple[type[Exception], ...], str | None, str], ...] = (
    (
        (exceptions.NoCredentialsError, exceptions.PartialCredentialsError),
        "no AWS credentials were found",
        "log in (aws sso login), set AWS_PROFILE, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    ),
    ((exceptions.TokenRetrievalError, exceptions.SSOError), "the AWS login has expired", _LOG_IN),
    # The text of the process that should give credentials is not shown: it might hold some.
    ((exceptions.CredentialRetrievalError,), "the AWS credentials could not be fetched", _LOG_IN),
    ((exceptions.ConnectionError, exceptions.HTTPClientError), None, _CHECK_NETWORK),
    ((ResponseParserError,), "the answer is not from AWS", _CHECK_NETWORK),
)

# Error codes of the services for the same few causes.
_THROTTLED = frozenset(
    {
        *("Throttling", "ThrottlingException", "ThrottledException", "RequestThrottled", "RequestThrottledException"),
        *("TooManyRequestsException", "RequestLimitExceeded", "SlowDown", "EC2ThrottledException"),
    }
)
_DENIED = frozenset({"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"})
_EXPIRED = ("ExpiredToken", "ExpiredTokenException", "RequestExpired")
_REFUSED = (
    *("UnrecognizedClientException", "InvalidClientTokenId", "AuthFailure"),
    *("SignatureDoesNotMatch", "InvalidSignatureException", "IncompleteSignature"),
)
_ANSWERS: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(_EXPIRED, f"the AWS credentials have expired; {_LOG_IN}")
    | dict.fromkeys(_REFUSED, f"AWS does not accept the credentials; {_NEW_KEYS}")
    | {"OptInRequired": "the region is not enabled for the account; enable it or use another"}
)


class AwsError(Exception):
    """AWS gave no answer; the text is one line: what was asked, what came back, the smallest fix.

    `code` is the service's error code; empty where no service answered.
    """

    def __init__(self, message: str, code: str = "") -> None:
        """Keep the line and the code."""
        super().__init__(message)
        self.code = code


def connect(region: str | None = None, profile: str | None = None) -> "Aws":
    """The account of the environment or of a profile; AwsError where there is no such profile or no region."""
    try:
        # boto3 itself does not read AWS_REGION, Pulumi's aws plugin does: both shall ask in the same region.
        return Aws(boto3.Session(region_name=region or os.environ.get("AWS_REGION"), profile_name=profile))
    except exceptions.BotoCoreError as error:
        raise AwsError(f"{_one_line(error)}; {_NEW_KEYS}") from None


class Aws:
    """One account in one region. Clients are made when they are first used, and retry what AWS throttles."""

    def __init__(self, session: boto3.Session, region: str | None = None, attempts: int = ATTEMPTS) -> None:
        """Ask through a session, in its region or another; AwsError if there is none. `attempts` bounds one call."""
        self.session = session
        self.region = region or session.region_name or ""
        if not self.region:
            raise AwsError("no AWS region is set; set aws:region in the stack file, or AWS_REGION")
        self._config = Config(
            region_name=self.region,
            retries={"mode": "standard", "total_max_attempts": attempts},
            connect_timeout=CONNECT_TIMEOUT_SECONDS,
            read_timeout=READ_TIMEOUT_SECONDS,
        )

    @property
    def partition(self) -> str:
        """The region's: aws, aws-cn, aws-us-gov; known without asking."""
        return self.session.get_partition_for_region(self.region)

    @cached_property
    def ec2(self) -> "EC2Client":
        """Instances, instance types, subnets, capacity reservations."""
        return self.session.client("ec2", config=self._config)

    @cached_property
    def eks(self) -> "EKSClient":
        """Clusters, add-on versions."""
        return self.session.client("eks", config=self._config)

    @cached_property
    def iam(self) -> "IAMClient":
        """Roles."""
        return self.session.client("iam", config=self._config)

    @cached_property
    def tagging(self) -> "ResourceGroupsTaggingAPIClient":
        """Resources of nearly all services, by their tags."""
        return self.session.client("resourcegroupstaggingapi", config=self._config)

    @cached_property
    def service_quotas(self) -> "ServiceQuotasClient":
        """The account's quotas."""
        return self.session.client("service-quotas", config=self._config)

    @cached_property
    def ssm(self) -> "SSMClient":
        """The public parameters that name AMI releases."""
        return self.session.client("ssm", config=self._config)

    @cached_property
    def sts(self) -> "STSClient":
        """Who is asking."""
        return self.session.client("sts", config=self._config)

    @contextmanager
    def asking(self, action: str) -> Iterator[None]:
        """Turn what boto3 raises inside into an AwsError; `action` is the IAM action, as in ec2:DescribeSubnets."""
        try:
            yield
        except exceptions.ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            raise AwsError(f"{action} in {self.region}: {_answered(action, code, error)}", code) from None
        except (exceptions.BotoCoreError, ResponseParserError) as error:
            raise AwsError(f"{action} in {self.region}: {_unanswered(error)}") from None


def _answered(action: str, code: str, error: exceptions.ClientError) -> str:
    if code in _THROTTLED:
        attempts = error.response["ResponseMetadata"].get("RetryAttempts", 0) + 1
        return f"throttled at each of {attempts} attempts ({code}); wait a minute and try again"
    if code in _DENIED:
        denied_by = "a policy denies it" if "explicit deny" in str(error) else "no policy allows it"
        return f"not permitted, {denied_by} ({code}); allow the IAM action {action}"
    return f"{_ANSWERS[code]} ({code})" if code in _ANSWERS else _one_line(error)


def _unanswered(error: Exception) -> str:
    for kinds, cause, fix in _NO_ANSWER:
        if isinstance(error, kinds):
            return f"{cause or _one_line(error)}; {fix}"
    return _one_line(error)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:LONGEST_MESSAGE_CHARACTERS]
