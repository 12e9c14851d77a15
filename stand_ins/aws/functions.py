"""Functions of the aws plugin: computed here, or asked of the AWS API at AWS_ENDPOINT_URL, which is moto."""

import json
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from stand_ins.aws.errors import StandInError
from stand_ins.aws.outputs import Scope
from stand_ins.aws.values import Properties, Value

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_eks import EKSClient
    from mypy_boto3_ssm import SSMClient
    from mypy_boto3_sts import STSClient

Arguments = Mapping[str, Any]
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_SECONDS = 10


def invoke(token: str, arguments: Arguments, scope: Scope) -> Properties:
    """The result of a function such as aws:index/getRegion:getRegion.

    Raises:
        StandInError: a function that the stand-in does not have, or what AWS_ENDPOINT_URL answered.
    """
    function = _FUNCTIONS.get(token)
    if function is None:
        known = ", ".join(name.rpartition(":")[2] for name in _FUNCTIONS)
        raise StandInError(f"{token} is not a function of the stand-in, which has {known}")
    try:
        return function(arguments, scope)
    except (BotoCoreError, ClientError) as error:
        raise StandInError(f"{token}: {error}") from error


def _get_partition(_arguments: Arguments, scope: Scope) -> Properties:
    suffix = "amazonaws.com.cn" if scope.partition == "aws-cn" else "amazonaws.com"
    reverse = ".".join(reversed(suffix.split(".")))
    return {"id": scope.partition, "partition": scope.partition, "dnsSuffix": suffix, "reverseDnsPrefix": reverse}


def _get_region(arguments: Arguments, scope: Scope) -> Properties:
    region = arguments.get("region") or arguments.get("name") or scope.region
    return {"id": region, "region": region, "name": region, "description": region, "endpoint": f"ec2.{region}"}


def _get_caller_identity(_arguments: Arguments, scope: Scope) -> Properties:
    client: STSClient = _client("sts", scope)
    identity = client.get_caller_identity()
    account = identity["Account"]
    return {"id": account, "accountId": account, "arn": identity["Arn"], "userId": identity["UserId"]}


def _get_availability_zones(arguments: Arguments, scope: Scope) -> Properties:
    client: EC2Client = _client("ec2", scope)
    zones = client.describe_availability_zones(Filters=_filters(arguments.get("filters", [])))["AvailabilityZones"]
    wanted = [
        zone
        for zone in zones
        if arguments.get("state") in (None, zone["State"])
        and zone["ZoneId"] not in arguments.get("excludeZoneIds", [])
        and zone["ZoneName"] not in arguments.get("excludeNames", [])
    ]
    return {
        **arguments,
        "id": scope.region,
        "names": [zone["ZoneName"] for zone in wanted],
        "zoneIds": [zone["ZoneId"] for zone in wanted],
        "groupNames": sorted({zone.get("GroupName") or scope.region for zone in wanted}),
    }


def _get_addon_version(arguments: Arguments, scope: Scope) -> Properties:
    client: EKSClient = _client("eks", scope)
    name, cluster_version = arguments["addonName"], arguments["kubernetesVersion"]
    answer = client.describe_addon_versions(addonName=name, kubernetesVersion=cluster_version)
    # AWS gives the newest first.
    for addon in answer["addons"]:
        for version in addon["addonVersions"]:
            fits = [entry for entry in version["compatibilities"] if entry["clusterVersion"] == cluster_version]
            if fits and (arguments.get("mostRecent") or fits[0].get("defaultVersion")):
                return {**arguments, "id": name, "region": scope.region, "version": version["addonVersion"]}
    raise StandInError(f"getAddonVersion: no version of {name} for Kubernetes {cluster_version}")


def _get_parameter(arguments: Arguments, scope: Scope) -> Properties:
    client: SSMClient = _client("ssm", scope)
    decrypted = arguments.get("withDecryption", True)
    parameter = client.get_parameter(Name=arguments["name"], WithDecryption=decrypted)["Parameter"]
    value = parameter["Value"]
    return {
        "id": arguments["name"],
        "name": parameter["Name"],
        "arn": parameter["ARN"],
        "type": parameter["Type"],
        "value": value,
        "insecureValue": "" if parameter["Type"] == "SecureString" else value,
        "version": parameter["Version"],
        "withDecryption": decrypted,
        "region": scope.region,
    }


def _get_ami(arguments: Arguments, scope: Scope) -> Properties:
    client: EC2Client = _client("ec2", scope)
    owners = {"Owners": arguments["owners"]} if "owners" in arguments else {}
    images = client.describe_images(Filters=_filters(arguments.get("filters", [])), **owners)["Images"]
    if not images:
        raise StandInError("getAmi: no image has these owners and filters")
    if len(images) > 1 and not arguments.get("mostRecent"):
        raise StandInError(f"getAmi: {len(images)} images have these owners and filters; narrow them or set mostRecent")
    newest = max(images, key=lambda image: image["CreationDate"])
    return {
        **arguments,
        "id": newest["ImageId"],
        "imageId": newest["ImageId"],
        "name": newest.get("Name", ""),
        "architecture": newest.get("Architecture", ""),
        "creationDate": newest["CreationDate"],
        "ownerId": newest.get("OwnerId", ""),
        "region": scope.region,
    }


def _get_policy_document(arguments: Arguments, _scope: Scope) -> Properties:
    """A policy as JSON, a single value of a list written as itself: as the real one writes it."""
    document = {
        "Version": arguments.get("version", "2012-10-17"),
        **({"Id": arguments["policyId"]} if "policyId" in arguments else {}),
        "Statement": [_statement(statement) for statement in arguments.get("statements", [])],
    }
    text = json.dumps(document, indent=2)
    return {**arguments, "id": "stand-in", "json": text, "minifiedJson": json.dumps(document, separators=(",", ":"))}


def _statement(statement: Arguments) -> dict[str, Value]:
    written: dict[str, Value] = {"Sid": statement["sid"]} if statement.get("sid") else {}
    written["Effect"] = statement.get("effect", "Allow")
    for key, name in (("actions", "Action"), ("notActions", "NotAction")):
        if statement.get(key):
            written[name] = _one_or_all(statement[key])
    for key, name in (("resources", "Resource"), ("notResources", "NotResource")):
        if statement.get(key):
            written[name] = _one_or_all(statement[key])
    for key, name in (("principals", "Principal"), ("notPrincipals", "NotPrincipal")):
        if statement.get(key):
            written[name] = _principals(statement[key])
    if statement.get("conditions"):
        written["Condition"] = _conditions(statement["conditions"])
    return written


def _principals(principals: list[dict[str, Any]]) -> Value:
    if any(principal["type"] == "*" for principal in principals):
        return "*"
    return {principal["type"]: _one_or_all(principal["identifiers"]) for principal in principals}


def _conditions(conditions: list[dict[str, Any]]) -> Value:
    written: dict[str, dict[str, Value]] = {}
    for condition in conditions:
        written.setdefault(condition["test"], {})[condition["variable"]] = _one_or_all(condition["values"])
    return written


def _one_or_all(values: list[Value]) -> Value:
    return values[0] if len(values) == 1 else values


def _filters(filters: list[dict[str, Any]]) -> list[Any]:
    return [{"Name": entry["name"], "Values": entry["values"]} for entry in filters]


def _client(service: str, scope: Scope) -> Any:
    """A client of the AWS API on this machine; never of the real one."""
    url = os.environ.get("AWS_ENDPOINT_URL", "")
    if urlsplit(url).hostname not in _LOOPBACK:
        raise StandInError(f"AWS_ENDPOINT_URL is {url!r}; it has to be an AWS API on this machine, such as moto")
    configuration = Config(connect_timeout=_SECONDS, read_timeout=_SECONDS, retries={"total_max_attempts": 2})
    # The annotations of boto3 want each service by its name.
    client: Any = boto3.client
    return client(service, region_name=scope.region, endpoint_url=url, config=configuration)


_FUNCTIONS: Mapping[str, Callable[[Arguments, Scope], Properties]] = {
    "aws:index/getPartition:getPartition": _get_partition,
    "aws:index/getRegion:getRegion": _get_region,
    "aws:index/getCallerIdentity:getCallerIdentity": _get_caller_identity,
    "aws:index/getAvailabilityZones:getAvailabilityZones": _get_availability_zones,
    "aws:eks/getAddonVersion:getAddonVersion": _get_addon_version,
    "aws:iam/getPolicyDocument:getPolicyDocument": _get_policy_document,
    "aws:ssm/getParameter:getParameter": _get_parameter,
    "aws:ec2/getAmi:getAmi": _get_ami,
}
