"""Who is asking."""

from dataclasses import dataclass

from components.lookups.aws import Aws


@dataclass(frozen=True)
class Identity:
    """The account (12 digits) and the principal's ARN."""

    account: str
    arn: str


def caller_identity(aws: Aws) -> Identity:
    """The caller's identity; AwsError where the credentials are no good. It needs no permission."""
    with aws.asking("sts:GetCallerIdentity"):
        answer = aws.sts.get_caller_identity()
    return Identity(answer["Account"], answer["Arn"])
