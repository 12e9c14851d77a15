"""`make leftovers STACK=...`: what on AWS still carries a stack's tags, as after `pulumi destroy`. It only reads.

A resource is found by its tags, never by its name: those of the stack and, where the stack made its cluster, those that
controllers put on what they make for the cluster. The Resource Groups Tagging API knows them all but IAM roles, which
are asked for one by one.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import yaml

from components.lookups.aws import Aws, AwsError, connect
from neuron.tags import STACK_TAG, cluster_tags, stack_cluster_name
from tools.errors import report_error_line
from tools.stack_files import UnknownStackError, stack_file
from tools.versions import ROOT

_KEPT = (
    "Nothing was changed. The model bucket stays on purpose (modelCache.retain); what is deleted may show for an hour."
)
_ROLES_PER_LINE = 100


@dataclass(frozen=True)
class Leftover:
    """A resource that exists, and a tag that says whose it is."""

    arn: str
    tag: str


def leftovers(aws: Aws, stack: str, eks_name: str | None) -> list[Leftover]:
    """What is left of a stack in the account's region, by ARN; `eks_name` is None where the stack made no cluster."""
    tags = {STACK_TAG: stack} | (cluster_tags(eks_name) if eks_name else {})
    found: dict[str, Leftover] = {}
    for key, value in tags.items():
        for arn in _tagged(aws, key, value):
            found.setdefault(arn, Leftover(arn, f"{key}={value}"))
    for arn in _roles(aws, STACK_TAG, stack):
        found.setdefault(arn, Leftover(arn, f"{STACK_TAG}={stack}"))
    return sorted(found.values(), key=lambda one: one.arn)


def _tagged(aws: Aws, key: str, value: str) -> Iterator[str]:
    with aws.asking("tag:GetResources"):
        pages = aws.tagging.get_paginator("get_resources").paginate(TagFilters=[{"Key": key, "Values": [value]}])
        for page in pages:
            yield from (one["ResourceARN"] for one in page["ResourceTagMappingList"])


def _roles(aws: Aws, key: str, value: str) -> Iterator[str]:
    """Roles, whose list does not say their tags."""
    with aws.asking("iam:ListRoles"):
        roles = [role for page in aws.iam.get_paginator("list_roles").paginate() for role in page["Roles"]]
    for number, role in enumerate(roles, start=1):
        if number % _ROLES_PER_LINE == 0:
            report_error_line(f"leftovers: {number} of {len(roles)} roles looked at")
        if _role_tags(aws, role["RoleName"]).get(key) == value:
            yield role["Arn"]


def _role_tags(aws: Aws, name: str) -> Mapping[str, str]:
    try:
        with aws.asking("iam:ListRoleTags"):
            pages = aws.iam.get_paginator("list_role_tags").paginate(RoleName=name)
            return {tag["Key"]: tag["Value"] for page in pages for tag in page["Tags"]}
    except AwsError as error:
        # Gone since it was listed.
        if error.code == "NoSuchEntity":
            return {}
        raise


def render(found: list[Leftover], stack: str, region: str) -> str:
    """A table of what was found, or the one line that there is nothing."""
    if not found:
        return f"nothing in {region} is left of stack {stack}"
    rows = [("SERVICE", "RESOURCE", "FOUND BY"), *((*_service_and_resource(one.arn), one.tag) for one in found)]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    lines = [f"{service:{widths[0]}}  {resource:{widths[1]}}  {tag}" for service, resource, tag in rows]
    return "\n".join([*lines, f"{len(found)} left of stack {stack} in {region}. {_KEPT}"])


def _service_and_resource(arn: str) -> tuple[str, str]:
    """The parts of arn:partition:service:region:account:resource that tell one from another."""
    _, _, service, _, _, resource = arn.split(":", maxsplit=5)
    return service, resource


def main() -> int:
    """List what is left of the stack that the command line names."""
    if len(sys.argv) != 2:
        print("usage: python -m tools.leftovers STACK", file=sys.stderr)
        return 2
    stack = sys.argv[1]
    try:
        config = (yaml.safe_load(stack_file(stack).read_text()) or {}).get("config") or {}
        aws = connect(config.get("aws:region"))
        makes_cluster = (config.get("neuron-serving:cluster") or {}).get("mode") == "create"
        found = leftovers(aws, stack, stack_cluster_name(_project(), stack) if makes_cluster else None)
    except (UnknownStackError, AwsError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(render(found, stack, aws.region))
    return 0


def _project() -> str:
    name: str = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())["name"]
    return name


if __name__ == "__main__":
    sys.exit(main())
