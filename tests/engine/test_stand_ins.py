"""The stand-ins under the real CLI: from VPC to Kubernetes object, and back."""

import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from stand_ins import CONTROL_PLANE_VARIABLE
from stand_ins.aws.provider import NAME as AWS_NAME
from stand_ins.aws_api import AwsStandIn, json_reply
from stand_ins.eks.provider import NAME as EKS_NAME
from stand_ins.toolchain import with_stand_ins
from tools import toolchain
from tools.control_plane import ControlPlane
from tools.control_plane.api import Api
from tools.environment import pulumi_environment
from tools.versions import ROOT

PROJECT = "stand-ins"
CONFIG_MAP = "/api/v1/namespaces/default/configmaps"
_RUN_SECONDS = 300
# What the real pulumi-eks registers for a cluster with access entries of its own and no default node group.
CLUSTER_RESOURCES = {
    "eks:index:Cluster": 1,
    "eks:index:ServiceRole": 1,
    "eks:index:VpcCniAddon": 1,
    "aws:ec2/securityGroup:SecurityGroup": 2,
    "aws:ec2/securityGroupRule:SecurityGroupRule": 6,
    "aws:eks/accessEntry:AccessEntry": 1,
    "aws:eks/addon:Addon": 2,
    "aws:eks/cluster:Cluster": 1,
    "aws:iam/role:Role": 2,
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": 1,
}


@dataclass(frozen=True)
class Program:
    """The program in a folder of its own."""

    directory: Path
    environment: dict[str, str]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the CLI, which has to succeed."""
        ended = subprocess.run(
            ["pulumi", *arguments, "--non-interactive", "--color", "never"],
            cwd=self.directory,
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            timeout=_RUN_SECONDS,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended

    def types(self) -> Counter[str]:
        """How many resources of each type the state has."""
        deployment = json.loads(self.run("stack", "export").stdout)["deployment"]
        return Counter(resource["type"] for resource in deployment.get("resources", []))


@pytest.fixture
def aws_api() -> Iterator[AwsStandIn]:
    api = AwsStandIn()
    compatibility = {"clusterVersion": "1.35", "defaultVersion": True}
    version = {"addonVersion": "v1.0.0-eksbuild.1", "compatibilities": [compatibility]}
    api.reply("DescribeAddonVersions", json_reply({"addons": [{"addonName": "any", "addonVersions": [version]}]}))
    yield api
    api.close()


@pytest.fixture
def program(tmp_path: Path, aws_api: AwsStandIn, control_plane: ControlPlane) -> Program:
    directory = tmp_path / "program"
    directory.mkdir()
    runtime = {"name": "python", "options": {"virtualenv": str(ROOT / ".venv")}}
    (directory / "Pulumi.yaml").write_text(yaml.safe_dump({"name": PROJECT, "runtime": runtime}))
    (directory / "__main__.py").write_text((Path(__file__).parent / "stand_in_program.py").read_text())
    environment = pulumi_environment(tmp_path, with_stand_ins(toolchain.ensure(report=lambda _: None)))
    environment |= {
        "AWS_ENDPOINT_URL": aws_api.url,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "NO_PROXY": "127.0.0.1",
        CONTROL_PLANE_VARIABLE: str(control_plane.kubeconfig),
    }
    made = Program(directory, environment)
    made.run("stack", "init", "test")
    made.run("config", "set", "aws:region", "us-west-2")
    made.run("config", "set", "instanceType", "inf2.xlarge")
    return made


def test_a_stack_goes_up_from_vpc_to_kubernetes_object_and_down_again(
    program: Program, control_plane: ControlPlane
) -> None:
    api = Api(control_plane.kubeconfig)

    preview = program.run("preview", "--diff")
    assert AWS_NAME in preview.stderr
    assert EKS_NAME in preview.stderr
    assert 'instanceTypes : [\n            [0]: "inf2.xlarge"' in preview.stdout

    program.run("up", "--yes", "--skip-preview")
    types = program.types()
    assert {kind: types[kind] for kind in CLUSTER_RESOURCES} == CLUSTER_RESOURCES
    greeting = api.get(f"{CONFIG_MAP}/stand-in-greeting")
    assert greeting["data"]["cluster"] == "arn:aws:eks:us-west-2:123456789012:cluster/serving"

    program.run("preview", "--expect-no-changes")

    program.run("config", "set", "instanceType", "trn1.2xlarge")
    steps = {
        step["urn"].rpartition("::")[2]: step
        for step in json.loads(program.run("preview", "--json").stdout)["steps"]
        if step["op"] != "same"
    }
    assert steps.keys() == {"neuron"}
    assert steps["neuron"]["op"] == "replace"
    assert steps["neuron"]["replaceReasons"] == ["instanceTypes[0]"]
    assert steps["neuron"]["detailedDiff"] == {"instanceTypes[0]": {"kind": "update-replace", "inputDiff": True}}

    program.run("destroy", "--yes")
    assert "stand-in-greeting" not in [item["metadata"]["name"] for item in api.get(CONFIG_MAP)["items"]]
    assert not program.types()
