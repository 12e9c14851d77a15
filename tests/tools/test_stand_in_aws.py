"""The stand-in for Pulumi's aws plugin, asked over gRPC as the engine asks it."""

from collections.abc import Iterator, Mapping
from typing import Any

import grpc
import pytest
from google.protobuf import json_format
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from stand_ins import CONTROL_PLANE_VARIABLE
from stand_ins.aws import schema
from stand_ins.aws.facts import FACTS, NAME_PROPERTIES
from stand_ins.aws.provider import NAME, AwsProvider
from stand_ins.aws.values import UNKNOWN, to_struct
from stand_ins.aws_api import AwsStandIn, json_reply
from stand_ins.serving import start

# The SDK marks old types when it is imported.
pytestmark = pytest.mark.filterwarnings("ignore:.* has been deprecated in favor of :DeprecationWarning")

VPC = "aws:ec2/vpc:Vpc"
SECURITY_GROUP = "aws:ec2/securityGroup:SecurityGroup"
LAUNCH_TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
CLUSTER = "aws:eks/cluster:Cluster"
NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"
BUCKET = "aws:s3/bucket:Bucket"
TABLE = "aws:dynamodb/table:Table"
GET_ADDON_VERSION = "aws:eks/getAddonVersion:getAddonVersion"
NODES = {
    "clusterName": "serving",
    "nodeRoleArn": "arn:aws:iam::123456789012:role/nodes",
    "scalingConfig": {"desiredSize": 1, "maxSize": 2, "minSize": 1},
    "subnetIds": ["subnet-1"],
    "instanceTypes": ["inf2.xlarge"],
    "launchTemplate": {"id": "lt-1", "version": "1"},
    "labels": {"aws.amazon.com/neuron.present": "true"},
}
Inputs = Mapping[str, Any]


class Client:
    """The calls of an engine, with plain values."""

    def __init__(self, stub: provider_pb2_grpc.ResourceProviderStub) -> None:
        self.stub = stub

    def check(self, token: str, news: Inputs, olds: Inputs | None = None) -> tuple[dict[str, Any], dict[str, str]]:
        """The inputs, and the failures by path."""
        request = provider_pb2.CheckRequest(urn=urn(token), news=to_struct(news), olds=to_struct(olds or {}))
        response = self.stub.Check(request)
        return plain(response.inputs), {failure.property: failure.reason for failure in response.failures}

    def diff(self, token: str, old: Inputs, new: Inputs) -> provider_pb2.DiffResponse:
        request = provider_pb2.DiffRequest(urn=urn(token), old_inputs=to_struct(old), news=to_struct(new))
        response: provider_pb2.DiffResponse = self.stub.Diff(request)
        return response

    def create(self, token: str, inputs: Inputs, preview: bool = False) -> tuple[str, dict[str, Any]]:
        request = provider_pb2.CreateRequest(urn=urn(token), properties=to_struct(inputs), preview=preview)
        response = self.stub.Create(request)
        return response.id, plain(response.properties)

    def update(self, token: str, olds: Inputs, old: Inputs, new: Inputs, preview: bool = False) -> dict[str, Any]:
        request = provider_pb2.UpdateRequest(
            urn=urn(token), olds=to_struct(olds), old_inputs=to_struct(old), news=to_struct(new), preview=preview
        )
        return plain(self.stub.Update(request).properties)

    def invoke(self, token: str, arguments: Inputs) -> dict[str, Any]:
        response = self.stub.Invoke(provider_pb2.InvokeRequest(tok=token, args=to_struct(arguments)))
        return plain(getattr(response, "return"))


def urn(token: str) -> str:
    return f"urn:pulumi:test::neuron-serving::eks:index:Cluster${token}::Main"


def plain(struct: Any) -> dict[str, Any]:
    values: dict[str, Any] = json_format.MessageToDict(struct)
    return values


def kinds(response: provider_pb2.DiffResponse) -> dict[str, str]:
    return {path: provider_pb2.PropertyDiff.Kind.Name(item.kind) for path, item in response.detailedDiff.items()}


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    server, port = start(AwsProvider())
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = provider_pb2_grpc.ResourceProviderStub(channel)
        tags = '{"tags": {"stack": "test"}}'
        configuration = to_struct({"region": "us-west-2", "defaultTags": tags})
        stub.Configure(provider_pb2.ConfigureRequest(args=configuration, acceptSecrets=True))
        yield Client(stub)
    server.stop(grace=None).wait()


@pytest.fixture
def aws_api(monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsStandIn]:
    api = AwsStandIn()
    monkeypatch.setenv("AWS_ENDPOINT_URL", api.url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    yield api
    api.close()


def test_inputs_that_the_sdk_does_not_know_are_refused_with_the_nearest_name_and_the_stand_in_s(client: Client) -> None:
    _, failures = client.check(NODE_GROUP, {**NODES, "instanceType": "inf2.xlarge"})
    assert failures.keys() == {"instanceType"}
    assert "did you mean instanceTypes?" in failures["instanceType"]
    assert NAME in failures["instanceType"]


def test_missing_inputs_are_refused(client: Client) -> None:
    _, failures = client.check(NODE_GROUP, {name: value for name, value in NODES.items() if name != "nodeRoleArn"})
    assert failures.keys() == {"nodeRoleArn"}
    assert "required and missing" in failures["nodeRoleArn"]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"scalingConfig": {"desiredSize": 1, "maxSize": 2}}, "scalingConfig.minSize"),
        ({"scalingConfig": {"desired": 1, "desiredSize": 1, "maxSize": 2, "minSize": 1}}, "scalingConfig.desired"),
        ({"taints": [{"key": "aws.amazon.com/neuron", "effekt": "NO_SCHEDULE"}]}, "taints[0].effekt"),
        ({"subnetIds": "subnet-1"}, "subnetIds"),
        ({"labels": ["a"]}, "labels"),
        ({"diskSize": {"gib": 20}}, "diskSize"),
    ],
)
def test_parts_of_a_wrong_form_are_refused_by_their_path(client: Client, change: Inputs, path: str) -> None:
    _, failures = client.check(NODE_GROUP, {**NODES, **change})
    assert path in failures


def test_a_policy_may_be_text_or_an_object(client: Client) -> None:
    for policy in ("{}", {"Version": "2012-10-17", "Statement": []}):
        _, failures = client.check("aws:iam/role:Role", {"assumeRolePolicy": policy})
        assert not failures


def test_unknown_inputs_pass_the_check(client: Client) -> None:
    inputs, failures = client.check(NODE_GROUP, {**NODES, "subnetIds": UNKNOWN, "launchTemplate": UNKNOWN})
    assert not failures
    assert inputs["subnetIds"] == UNKNOWN


def test_a_type_that_the_sdk_does_not_have_is_refused(client: Client) -> None:
    with pytest.raises(grpc.RpcError, match="has no resource type aws:ec2/vpcs:Vpcs"):
        client.check("aws:ec2/vpcs:Vpcs", {})


def test_a_name_is_made_once_and_stays(client: Client) -> None:
    first, _ = client.check(NODE_GROUP, NODES)
    second, _ = client.check(NODE_GROUP, {**NODES, "diskSize": 50}, olds=first)
    replacement, _ = client.check(NODE_GROUP, {**NODES, "diskSize": 50})
    assert first["nodeGroupName"].startswith("Main-")
    assert len(first["nodeGroupName"]) == len("Main-") + 7
    assert second["nodeGroupName"] == first["nodeGroupName"] != replacement["nodeGroupName"]


def test_bucket_names_are_lower_case_and_given_names_stay(client: Client) -> None:
    made, _ = client.check(BUCKET, {})
    given, _ = client.check(BUCKET, {"bucket": "models"})
    prefixed, _ = client.check(BUCKET, {"bucketPrefix": "models-"})
    assert made["bucket"].startswith("main-")
    assert given["bucket"] == "models"
    assert "bucket" not in prefixed


@pytest.mark.parametrize(
    ("change", "path", "kind"),
    [
        ({"instanceTypes": ["trn1.2xlarge"]}, "instanceTypes[0]", "UPDATE_REPLACE"),
        ({"amiType": "AL2023_x86_64_NEURON"}, "amiType", "ADD_REPLACE"),
        ({"subnetIds": ["subnet-1", "subnet-2"]}, "subnetIds[1]", "ADD_REPLACE"),
        ({"launchTemplate": {"id": "lt-2", "version": "1"}}, "launchTemplate.id", "UPDATE_REPLACE"),
        ({"launchTemplate": {"id": "lt-1", "version": "2"}}, "launchTemplate.version", "UPDATE"),
        ({"launchTemplate": None}, "launchTemplate", "DELETE_REPLACE"),
        ({"region": "us-east-1"}, "region", "ADD_REPLACE"),
        ({"labels": {}}, 'labels["aws.amazon.com/neuron.present"]', "DELETE"),
        ({"scalingConfig": {"desiredSize": 1, "maxSize": 4, "minSize": 1}}, "scalingConfig.maxSize", "UPDATE"),
        ({"subnetIds": UNKNOWN}, "subnetIds", "UPDATE_REPLACE"),
    ],
)
def test_a_change_is_an_update_or_a_replacement_as_aws_has_it(
    client: Client, change: Inputs, path: str, kind: str
) -> None:
    response = client.diff(NODE_GROUP, NODES, {**NODES, **change})
    assert kinds(response) == {path: kind}
    assert list(response.replaces) == ([path] if kind.endswith("_REPLACE") else [])
    assert response.changes == provider_pb2.DiffResponse.DIFF_SOME


def test_the_same_inputs_are_no_change_even_when_one_becomes_secret(client: Client) -> None:
    secret = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "value": "serving"}
    response = client.diff(NODE_GROUP, NODES, {**NODES, "clusterName": secret})
    assert response.changes == provider_pb2.DiffResponse.DIFF_NONE


def test_what_the_program_named_is_deleted_before_its_replacement_comes(client: Client) -> None:
    change = {"description": "other"}
    named = client.diff(SECURITY_GROUP, {"name": "nodes"}, {"name": "nodes", **change})
    made, _ = client.check(SECURITY_GROUP, {})
    autonamed = client.diff(SECURITY_GROUP, made, client.check(SECURITY_GROUP, change, olds=made)[0])
    assert named.deleteBeforeReplace
    assert list(autonamed.replaces) == ["description"]
    assert not autonamed.deleteBeforeReplace


def test_a_preview_knows_inputs_and_tags_and_nothing_that_aws_computes(client: Client) -> None:
    _, outputs = client.create(VPC, {"cidrBlock": "10.0.0.0/16", "tags": {"Name": "main"}}, preview=True)
    assert outputs["cidrBlock"] == "10.0.0.0/16"
    assert outputs["tagsAll"] == {"stack": "test", "Name": "main"}
    assert outputs["arn"] == outputs["defaultSecurityGroupId"] == UNKNOWN


def test_a_created_resource_has_ids_and_arns_of_aws_s_form_and_the_same_ones_each_time(client: Client) -> None:
    inputs = {"cidrBlock": "10.0.0.0/16"}
    identifier, outputs = client.create(VPC, inputs)
    assert identifier.startswith("vpc-")
    assert len(identifier) == len("vpc-") + 17
    assert outputs["arn"] == f"arn:aws:ec2:us-west-2:123456789012:vpc/{identifier}"
    assert client.create(VPC, inputs) == (identifier, outputs)
    assert client.create(VPC, {"cidrBlock": "10.1.0.0/16"})[0] != identifier


def test_secret_inputs_stay_secret_in_the_outputs(client: Client) -> None:
    secret = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "value": "token"}
    _, outputs = client.create("aws:ssm/parameter:Parameter", {"name": "hf", "type": "SecureString", "value": secret})
    assert outputs["value"] == secret


def test_a_type_without_facts_has_an_id_an_arn_and_every_output_of_the_sdk(client: Client) -> None:
    assert TABLE not in FACTS
    identifier, outputs = client.create(TABLE, {"name": "t", "attributes": [{"name": "id", "type": "S"}]})
    assert outputs["arn"] == f"arn:aws:dynamodb:us-west-2:123456789012:table/{identifier}"
    assert outputs.keys() >= schema.known_resource(TABLE).always_present


def test_an_update_keeps_what_aws_computed_and_counts_launch_template_versions(client: Client) -> None:
    old = {"name": "nodes", "instanceType": "inf2.xlarge"}
    _, outputs = client.create(LAUNCH_TEMPLATE, old)
    new = {"name": "nodes", "imageId": "ami-1"}
    updated = client.update(LAUNCH_TEMPLATE, outputs, old, new)
    assert updated["arn"] == outputs["arn"]
    assert updated["latestVersion"] == outputs["latestVersion"] + 1
    assert updated["imageId"] == "ami-1"
    assert "instanceType" not in updated
    assert client.update(LAUNCH_TEMPLATE, outputs, old, new, preview=True)["latestVersion"] == UNKNOWN
    tagged = client.update(LAUNCH_TEMPLATE, outputs, old, {**old, "tags": {"a": "b"}}, preview=True)
    assert tagged["latestVersion"] == outputs["latestVersion"]


def test_a_cluster_without_a_control_plane_to_play_it_is_refused(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(CONTROL_PLANE_VARIABLE, raising=False)
    inputs = {"name": "serving", "roleArn": "arn", "vpcConfig": {"subnetIds": ["subnet-1"]}}
    assert client.create(CLUSTER, inputs, preview=True)[1]["endpoint"] == UNKNOWN
    with pytest.raises(grpc.RpcError, match=CONTROL_PLANE_VARIABLE):
        client.create(CLUSTER, inputs)


@pytest.mark.parametrize("token", FACTS)
def test_the_facts_name_types_and_properties_of_the_sdk(client: Client, token: str) -> None:
    del client
    known, facts = schema.known_resource(token), FACTS[token]
    inputs = schema.properties(known.inputs)
    assert {path.partition(".")[0] for path in facts.immutable} <= inputs.keys()
    assert facts.outputs.keys() <= known.outputs.keys()
    assert NAME_PROPERTIES.get(token, next(iter(inputs))) in inputs


def test_policy_documents_are_rendered_as_iam_reads_them(client: Client) -> None:
    statement = {
        "actions": ["s3:GetObject", "s3:ListBucket"],
        "resources": ["arn:aws:s3:::models/*"],
        "principals": [{"type": "AWS", "identifiers": ["arn:aws:iam::123456789012:root"]}],
        "conditions": [{"test": "Bool", "variable": "aws:SecureTransport", "values": ["false"]}],
        "effect": "Deny",
    }
    result = client.invoke("aws:iam/getPolicyDocument:getPolicyDocument", {"statements": [statement]})
    assert result["minifiedJson"] == (
        '{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Action":["s3:GetObject","s3:ListBucket"],'
        '"Resource":"arn:aws:s3:::models/*","Principal":{"AWS":"arn:aws:iam::123456789012:root"},'
        '"Condition":{"Bool":{"aws:SecureTransport":"false"}}}]}'
    )


def test_the_api_at_the_endpoint_answers_who_and_where(client: Client, aws_api: AwsStandIn) -> None:
    identity = client.invoke("aws:index/getCallerIdentity:getCallerIdentity", {})
    zones = client.invoke("aws:index/getAvailabilityZones:getAvailabilityZones", {"excludeZoneIds": ["usw2-az1"]})
    assert identity["accountId"] == "123456789012"
    assert zones["names"]
    assert "usw2-az1" not in zones["zoneIds"]
    assert aws_api.calls["GetCallerIdentity"] == 1


def test_the_newest_add_on_version_for_the_cluster_s_version_is_found(client: Client, aws_api: AwsStandIn) -> None:
    versions = [
        {"addonVersion": version, "compatibilities": [{"clusterVersion": "1.35", "defaultVersion": is_default}]}
        for version, is_default in (("v2", False), ("v1", True))
    ]
    aws_api.reply(
        "DescribeAddonVersions", json_reply({"addons": [{"addonName": "coredns", "addonVersions": versions}]})
    )
    asked = {"addonName": "coredns", "kubernetesVersion": "1.35"}
    assert client.invoke(GET_ADDON_VERSION, {**asked, "mostRecent": True})["version"] == "v2"
    assert client.invoke(GET_ADDON_VERSION, asked)["version"] == "v1"


def test_a_parameter_that_is_not_there_is_an_error_that_names_the_function(client: Client, aws_api: AwsStandIn) -> None:
    del aws_api
    with pytest.raises(grpc.RpcError, match=r"aws:ssm/getParameter:getParameter.*ParameterNotFound"):
        client.invoke("aws:ssm/getParameter:getParameter", {"name": "/none"})


@pytest.mark.parametrize("url", ["", "https://sts.us-west-2.amazonaws.com"])
def test_the_real_aws_is_never_asked(client: Client, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    with pytest.raises(grpc.RpcError, match="AWS_ENDPOINT_URL"):
        client.invoke("aws:index/getCallerIdentity:getCallerIdentity", {})


def test_a_function_that_the_stand_in_does_not_have_is_named(client: Client) -> None:
    with pytest.raises(grpc.RpcError, match="aws:ec2/getVpc:getVpc is not a function of the stand-in"):
        client.invoke("aws:ec2/getVpc:getVpc", {})


def test_an_unknown_argument_is_not_asked_about(client: Client) -> None:
    assert client.invoke("aws:ssm/getParameter:getParameter", {"name": UNKNOWN}) == {}


def test_a_provider_without_a_region_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    server, port = start(AwsProvider())
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel, pytest.raises(grpc.RpcError, match="no region"):
        provider_pb2_grpc.ResourceProviderStub(channel).Configure(provider_pb2.ConfigureRequest())
    server.stop(grace=None).wait()
