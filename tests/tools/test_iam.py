"""The IAM policies: each action is one that the code needs, exists, and takes the condition that it is given."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import botocore.session
import pulumi_aws
import pytest
from botocore import xform_name
from botocore.exceptions import ClientError
from moto import mock_aws
from policy_sentry.querying.actions import get_action_data

from tools.iam.__main__ import files
from tools.iam.lifecycles import LIFECYCLES, PARTS_OF_EKS_CLUSTER, VERBS
from tools.versions import ROOT

POLICIES = {name: json.loads(text) for name, text in files().items()}
# IAM's quota for the inline policies of a role together, white space not counted.
MAXIMUM_CHARACTERS = 10240
# Where boto3's name of a service is not that of its IAM actions.
IAM_PREFIXES = {"service-quotas": "servicequotas", "resourcegroupstaggingapi": "tag"}
# The clients of components.lookups.aws.Aws.
CLIENTS = {
    "ec2": "ec2",
    "eks": "eks",
    "service_quotas": "service-quotas",
    "ssm": "ssm",
    "sts": "sts",
    "iam": "iam",
    "tagging": "resourcegroupstaggingapi",
}


def actions_of(name: str) -> set[str]:
    return {action for statement in POLICIES[name]["Statement"] for action in statement["Action"]}


def parsed(folder: str, *others: str) -> Iterator[ast.AST]:
    """Every node of the Python files in a folder, and of other files."""
    for path in (*(ROOT / folder).rglob("*.py"), *(ROOT / other for other in others)):
        yield from ast.walk(ast.parse(path.read_text()))


def asking() -> Iterator[ast.AST]:
    """What asks AWS: the look-ups of a preview, and `make leftovers`."""
    return parsed("components/lookups", "tools/leftovers.py")


def boto3_actions() -> set[str]:
    """The IAM actions of the boto3 calls: `aws.ec2.describe_subnets(...)` or its paginator."""
    session = botocore.session.get_session()
    found = set()
    for node in asking():
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        owner = node.func.value
        if not (isinstance(owner, ast.Attribute) and owner.attr in CLIENTS):
            continue
        method = node.func.attr
        if method == "get_paginator":
            assert isinstance(node.args[0], ast.Constant)
            method = str(node.args[0].value)
        service = CLIENTS[owner.attr]
        operations = {xform_name(name): name for name in session.get_service_model(service).operation_names}
        found.add(f"{IAM_PREFIXES.get(service, service)}:{operations[method]}")
    return found


def named_actions() -> set[str]:
    """The actions that are named in messages: `aws.asking("ec2:DescribeSubnets")`."""
    calls = (node for node in asking() if isinstance(node, ast.Call))
    return {
        str(call.args[0].value)
        for call in calls
        if isinstance(call.func, ast.Attribute)
        and call.func.attr == "asking"
        and isinstance(call.args[0], ast.Constant)
    }


def registered_types() -> set[str]:
    """The AWS resource types that components/ makes: `aws.ec2.Vpc(...)`."""
    found = set()
    for node in parsed("components"):
        if isinstance(node, ast.Call) and (kind := resource_type(node.func)):
            found.add(kind)
    return found


def resource_type(function: ast.expr) -> str | None:
    path = ast.unparse(function).split(".")
    if path[0] != "aws" or len(path) != 3:
        return None
    kind = getattr(getattr(pulumi_aws, path[1], None), path[2], None)
    return getattr(kind, "pulumi_type", None)


def test_the_files_are_current() -> None:
    result = subprocess.run([sys.executable, "-m", "tools.iam", "--check"], cwd=ROOT, capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (0, "")


def test_a_preview_may_do_what_the_lookups_call_and_nothing_else() -> None:
    assert len(boto3_actions()) > 10, "the search itself works"
    assert actions_of("preview.json") == boto3_actions()


def test_a_missing_permission_is_reported_by_the_name_of_the_call() -> None:
    assert named_actions() == boto3_actions()


def test_each_resource_type_that_is_registered_has_its_actions_in_the_policy_for_up() -> None:
    kinds = registered_types() | set(PARTS_OF_EKS_CLUSTER)
    assert kinds == LIFECYCLES.keys(), "a row for each type, none for others"
    for kind in kinds:
        for verb in VERBS:
            assert LIFECYCLES[kind].names(verb) <= actions_of("up.json"), (kind, verb)
        assert all(LIFECYCLES[kind].names(verb) for verb in ("create", "read", "delete")), kind


def test_only_known_policies_may_be_attached_and_they_are_named_by_arn() -> None:
    (statement,) = [one for one in POLICIES["up.json"]["Statement"] if one["Sid"] == "AttachKnownPolicies"]
    known = statement["Condition"]["ArnEquals"]["iam:PolicyARN"]
    assert "arn:aws:iam::aws:policy/AmazonEKS_CNI_Policy" in known
    assert all(one.startswith("arn:aws:iam::aws:policy/") for one in known)


@mock_aws
def test_iam_accepts_the_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    """moto judges the grammar as IAM does, and says MalformedPolicyDocument."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    iam = boto3.client("iam", region_name="us-east-1")
    for name, policy in POLICIES.items():
        iam.create_policy(PolicyName=Path(name).stem, PolicyDocument=json.dumps(policy))
    broken = json.loads(json.dumps(POLICIES["up.json"]))
    broken["Statement"][0]["Condition"] = {"Nil": {"aws:ResourceTag/a": "false"}}
    with pytest.raises(ClientError, match="MalformedPolicyDocument"):
        iam.create_policy(PolicyName="broken", PolicyDocument=json.dumps(broken))


@pytest.mark.parametrize("name", POLICIES)
def test_resources_and_policies_are_named_by_arns(name: str) -> None:
    """IAM accepts any text in a condition, which then never holds."""
    for statement in POLICIES[name]["Statement"]:
        policies = statement.get("Condition", {}).get("ArnEquals", {}).get("iam:PolicyARN", [])
        assert all(one.startswith("arn:aws:iam::aws:policy/") for one in policies)
        assert statement["Resource"] == "*" or statement["Resource"].startswith("arn:aws:")


def test_both_policies_fit_into_one_role() -> None:
    assert sum(len(json.dumps(policy, separators=(",", ":"))) for policy in POLICIES.values()) <= MAXIMUM_CHARACTERS


@pytest.mark.parametrize("name", POLICIES)
def test_each_action_exists_and_takes_its_conditions(name: str) -> None:
    faults = [
        f"{action}: {fault}"
        for statement in POLICIES[name]["Statement"]
        for action in statement["Action"]
        for fault in faults_of(action, statement.get("Condition", {}))
    ]
    assert not faults


def test_an_unknown_action_and_a_condition_that_does_not_hold_are_found() -> None:
    assert list(faults_of("ec2:DescribeEverything", {})) == ["does not exist"]
    assert list(faults_of("ec2:DescribeVpcs", {"Null": {"aws:ResourceTag/a": "false"}})) == [
        "knows no aws:ResourceTag/a"
    ]


def faults_of(action: str, condition: dict[str, dict[str, Any]]) -> Iterator[str]:
    """What AWS's own reference, as policy-sentry ships it, says against an action under a condition."""
    service, _, name = action.partition(":")
    try:
        rows = get_action_data(service, name)
    except Exception:  # its own error for an unknown action
        rows = {}
    if not rows:
        yield "does not exist"
        return
    known = {key.partition("/")[0] for row in rows[service] for key in row["condition_keys"]}
    for key in (key for keys in condition.values() for key in keys):
        if key.partition("/")[0] not in known:
            yield f"knows no {key}"
