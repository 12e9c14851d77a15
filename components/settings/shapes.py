"""Values and sections that stack files are made of: what may stand there, said in words."""

import re
from ipaddress import IPv4Network
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError


def _matching(pattern: str, allowed: str) -> AfterValidator:
    """A validator that says what is allowed in words, where pydantic would print the pattern."""

    def validate(value: str) -> str:
        if re.fullmatch(pattern, value) is None:
            raise PydanticCustomError("not_allowed", allowed)
        return value

    return AfterValidator(validate)


# An example is what configuration.py puts in the place of a faulty value, to go on looking for other faults.
# https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#dns-label-names
DnsLabel = Annotated[
    str,
    _matching(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", "lower-case letters, digits and dashes, at most 63 of them"),
    Field(examples=["example"]),
]
# A branch or tag moves, and with it the weights behind a cache key.
Commit = Annotated[
    str,
    _matching(r"[0-9a-f]{40}", "a commit of the model's repository, 40 hexadecimal digits"),
    Field(examples=["0" * 40]),
]
KubernetesMinor = Annotated[
    str,
    _matching(r"1\.[0-9]{2}", 'a Kubernetes minor version in quotes, such as "1.36"'),
    Field(examples=["1.36"]),
]
SubnetId = Annotated[str, _matching(r"subnet-[0-9a-f]+", "a subnet's id, such as subnet-0a1b2c3d")]
ReservationId = Annotated[str, _matching(r"cr-[0-9a-f]+", "a capacity reservation's id, such as cr-0a1b2c3d")]
PrincipalArn = Annotated[
    str, _matching(r"arn:aws[-a-z]*:iam::[0-9]{12}:(role|user)/\S+", "the ARN of an IAM role or user")
]
SecretArn = Annotated[
    str,
    _matching(
        r"arn:aws[-a-z]*:secretsmanager:[-a-z0-9]+:[0-9]{12}:secret:[\w/+=.@-]+-[A-Za-z0-9]{6}",
        "the whole ARN of a secret in AWS Secrets Manager, with the six characters at its end",
    ),
]
CertificateArn = Annotated[
    str, _matching(r"arn:aws[-a-z]*:acm:[-a-z0-9]+:[0-9]{12}:certificate/\S+", "the ARN of a certificate in ACM")
]
# Each part a DNS label; a wildcard would let in requests that nobody meant.
Hostname = Annotated[
    str,
    _matching(
        r"(?=.{1,253}$)([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\.)+[a-z]([-a-z0-9]{0,61}[a-z0-9])?",
        "a DNS name in lower case, such as llm.example.com",
    ),
]
TaggedImage = Annotated[
    str, _matching(r"\S+:v1\.[0-9]{2}\S*", "an image with a tag that begins with its version, v1.36...")
]
# Of Amazon Managed Prometheus.
WorkspaceArn = Annotated[
    str,
    _matching(
        r"arn:aws[-a-z]*:aps:[-a-z0-9]+:[0-9]{12}:workspace/ws-[-a-z0-9]+", "the ARN of a workspace, arn:aws:aps:..."
    ),
]
OciUrl = Annotated[str, _matching(r"oci://\S+", "an OCI registry and path, such as oci://registry.example.com/charts")]

HttpUrl = Annotated[
    str,
    _matching(r"https?://[^\s/:]+:[0-9]{1,5}", "a scheme, a host and a port, such as http://prometheus.example:9090"),
    Field(examples=["http://prometheus.example:9090"]),
]
CronTime = Annotated[
    str,
    _matching(r"\S+( \S+){4}", 'a cron expression of five fields, such as "0 8 * * 1-5"'),
    Field(examples=["0 8 * * 1-5"]),
]
TimeZone = Annotated[
    str,
    _matching(r"[A-Za-z_]+(/[-+A-Za-z0-9_]+)*", "a time zone such as Asia/Seoul or Etc/UTC"),
    Field(examples=["Etc/UTC"]),
]


def _cidr(value: str) -> str:
    try:
        IPv4Network(value)
    except ValueError:
        raise PydanticCustomError("not_allowed", "an IPv4 network, such as 203.0.113.0/24") from None
    return value


Cidr = Annotated[str, AfterValidator(_cidr)]


class Section(BaseModel):
    """A section of a stack file: camelCase keys, none but these, no conversion between types."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, strict=True)


class ByNames(Section):
    """A section whose keys are names that others gave, with dashes."""

    model_config = ConfigDict(alias_generator=lambda name: name.replace("_", "-"))

    def stated(self) -> dict[str, Any]:
        """The keys that the stack file sets, as it spells them."""
        return self.model_dump(by_alias=True, exclude_none=True)
