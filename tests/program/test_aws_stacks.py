"""The program, run under mocks with the stack files for AWS: what it registers after asking the stand-in for AWS."""

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any

import pulumi
import pytest
from botocore.client import BaseClient
from moto.moto_api._internal.models import moto_api_backend

from components.lookups.aws import Aws
from stand_ins.aws_api import MOTO, AwsStandIn, ec2_error, json_reply
from tests.aws.conftest import account, environment, put_public_parameter, server  # noqa: F401
from tests.program.conftest import Recorder, stack_values
from tools.iam.policies import PREVIEW

Run = Callable[..., Recorder]
# pulumi-eks gives it; the mocks do not run pulumi-eks.
EKS_OUTPUTS = {"eks:index:Cluster": {"kubeconfigJson": "{}"}}
RELEASES = {("1.36", "20260625"): "1.36.2-20260625", ("1.35", "20260625"): "1.35.5-20260625"}


@pytest.fixture(scope="module")
def region(server: AwsStandIn, account: Aws) -> Iterator[Aws]:  # noqa: F811 - the fixtures above
    """us-west-2 with AMI releases, one version of each add-on, and an EKS cluster in the default VPC's subnets."""
    moto_api_backend.reset()
    server.reset()
    for (minor, date), version in RELEASES.items():
        folder = f"/aws/service/eks/optimized-ami/{minor}/amazon-linux-2023/x86_64/neuron"
        entry = f"{folder}/amazon-eks-node-al2023-x86_64-neuron-{minor}-v{date}"
        put_public_parameter(f"{entry}/image_id", "ami-0a")
        put_public_parameter(f"{entry}/release_version", version)
    info = {
        "addonVersion": "v1.9.0-eksbuild.1",
        "compatibilities": [{"clusterVersion": minor, "defaultVersion": True} for minor in ("1.35", "1.36")],
    }
    server.reply("DescribeAddonVersions", json_reply({"addons": [{"addonName": "any", "addonVersions": [info]}]}))
    subnet_ids = [subnet["SubnetId"] for subnet in account.ec2.describe_subnets()["Subnets"]]
    account.eks.create_cluster(
        name="neuron-workshop",
        version="1.35",
        roleArn="arn:aws:iam::123456789012:role/cluster",
        resourcesVpcConfig={"subnetIds": subnet_ids},
    )
    yield account
    server.reset()


@pytest.fixture(scope="module")
def inf2_prod(region: Aws, run_program: Run) -> Recorder:  # noqa: ARG001 - what the program asks
    """The program with the stack file inf2-prod, run once."""
    return run_program(stack_values("inf2-prod"), outputs=EKS_OUTPUTS)


def only(recorder: Recorder, kind: str, name: str | None = None) -> dict[str, Any]:
    """The inputs of the only resource of that kind (and name)."""
    (found,) = [one for one in recorder.of_type(kind) if name in (None, one.name)]
    return found.inputs


class TestInf2Prod:
    """A cluster made here."""

    def test_the_cluster_is_private_logged_encrypted_and_joined_by_access_entries(self, inf2_prod: Recorder) -> None:
        cluster = only(inf2_prod, "eks:index:Cluster")
        assert cluster["name"] == "neuron-serving-local"
        assert cluster["version"] == "1.36"
        assert cluster["authenticationMode"] == "API"
        assert cluster["skipDefaultNodeGroup"] is True
        assert cluster["createOidcProvider"] is False
        assert cluster["publicAccessCidrs"] == ["203.0.113.0/24"]
        assert cluster["upgradePolicy"] == {"supportType": "STANDARD"}
        assert "audit" in cluster["enabledClusterLogTypes"]
        assert cluster["encryptionConfigKeyArn"] == "arn:aws:kms/key:Key:cluster"
        assert only(inf2_prod, "kms/key:Key")["enableKeyRotation"] is True

    def test_the_network_has_zones_that_offer_the_type_one_nat_and_a_way_to_s3(self, inf2_prod: Recorder) -> None:
        subnets = inf2_prod.of_type(":Subnet")
        zones = {one.inputs["availabilityZoneId"] for one in subnets}
        assert len(zones) == 3
        assert len(subnets) == 6
        assert len({one.inputs["cidrBlock"] for one in subnets}) == 6
        assert len(inf2_prod.of_type(":NatGateway")) == 1
        assert only(inf2_prod, ":VpcEndpoint")["serviceName"] == "com.amazonaws.us-west-2.s3"

    def test_the_node_group_is_pinned_bounded_and_repaired(self, inf2_prod: Recorder) -> None:
        group = only(inf2_prod, "eks/nodeGroup:NodeGroup", "inferentia")
        assert group["amiType"] == "AL2023_x86_64_NEURON"
        assert group["releaseVersion"] == "1.36.2-20260625"
        assert group["instanceTypes"] == ["inf2.xlarge"]
        assert group["scalingConfig"] == {"minSize": 3, "maxSize": 3, "desiredSize": 3}
        assert group["updateConfig"] == {"maxUnavailable": 1, "updateStrategy": "DEFAULT"}
        assert group["nodeRepairConfig"] == {"enabled": True}
        assert group["taints"][0]["key"] == "aws.amazon.com/neuron"
        assert group["tags"]["neuron-serving:stack"] == "local"
        assert all(subnet.startswith("cluster-private-usw2-") for subnet in group["subnetIds"])
        assert "remoteAccess" not in group

    def test_the_launch_template_has_no_ami_no_key_and_metadata_that_pods_reach(self, inf2_prod: Recorder) -> None:
        template = only(inf2_prod, ":LaunchTemplate", "inferentia")
        assert not {"imageId", "keyName", "instanceType"} & template.keys()
        assert template["metadataOptions"]["httpTokens"] == "required"
        assert template["metadataOptions"]["httpPutResponseHopLimit"] == 2
        disk = template["blockDeviceMappings"][0]["ebs"]
        assert (disk["volumeType"], disk["encrypted"], disk["volumeSize"]) == ("gp3", "true", 100)
        assert "FastImagePull" in base64.b64decode(template["userData"]).decode()

    def test_every_add_on_is_installed_at_a_version(self, inf2_prod: Recorder) -> None:
        addons = {one.inputs["addonName"]: one.inputs["addonVersion"] for one in inf2_prod.of_type(":Addon")}
        assert addons == dict.fromkeys(
            [
                *("vpc-cni", "kube-proxy", "eks-pod-identity-agent", "coredns"),
                *("metrics-server", "aws-mountpoint-s3-csi-driver"),
            ],
            "v1.9.0-eksbuild.1",
        )

    def test_the_network_plugin_enforces_network_policies(self, inf2_prod: Recorder) -> None:
        assert json.loads(only(inf2_prod, ":Addon", "vpc-cni")["configurationValues"]) == {
            "enableNetworkPolicy": "true"
        }

    def test_nodes_have_no_policy_of_the_network_plugin_which_has_its_own_role(self, inf2_prod: Recorder) -> None:
        attached = {one.name: one.inputs["policyArn"] for one in inf2_prod.of_type(":RolePolicyAttachment")}
        cni = [name for name, arn in attached.items() if arn.endswith("AmazonEKS_CNI_Policy")]
        assert cni == ["vpc-cni"]
        assert not [arn for arn in attached.values() if "FullAccess" in arn or "Administrator" in arn]

    def test_a_gateway_is_before_the_servers_and_its_load_balancers_controller_before_it(
        self, inf2_prod: Recorder
    ) -> None:
        releases = {one.name: one.inputs for one in inf2_prod.of_type("helm.sh/v3:Release")}
        assert releases["envoy-gateway"]["chart"] == "oci://docker.io/envoyproxy/gateway-helm"
        assert releases["load-balancer-controller"]["values"]["clusterName"] == "neuron-serving-local"
        role = only(inf2_prod, ":PodIdentityAssociation", "load-balancer-controller")
        assert role["serviceAccount"] == releases["load-balancer-controller"]["values"]["serviceAccount"]["name"]
        (policy,) = [one for one in inf2_prod.resources if one.inputs.get("kind") == "BackendTrafficPolicy"]
        # 2 replicas x 4 sequences x 2, shared by 2 proxies.
        assert policy.inputs["spec"]["circuitBreaker"]["maxParallelRequests"] == 8
        names = [one.name for one in inf2_prod.resources]
        assert names.index("load-balancer-controller") < names.index("envoy-gateway")

    def test_the_chart_is_pinned_and_the_recovery_has_its_role(self, inf2_prod: Recorder) -> None:
        chart = only(inf2_prod, "helm.sh/v4:Chart", "neuron")
        assert chart["chart"] == "oci://public.ecr.aws/neuron/neuron-helm-chart"
        assert chart["version"] == "1.10.0"
        assert chart["values"] == {
            "devicePlugin": {"enabled": True, "resources": {"limits": {"memory": "256Mi"}}},
            "draDriver": {"enabled": False},
            "scheduler": {"enabled": False},
            "npd": {"enabled": True, "nodeRecovery": {"enabled": True}},
        }
        association = only(inf2_prod, ":PodIdentityAssociation", "neuron-node-recovery")
        assert association["clusterName"] == "neuron-serving-local"
        assert association["namespace"] == "neuron-healthcheck-system"
        assert only(inf2_prod, ":Namespace", "neuron-healthcheck-system")

    def test_a_spare_node_carries_the_rollout(self, inf2_prod: Recorder) -> None:
        update = only(inf2_prod, ":Deployment")["spec"]["strategy"]["rollingUpdate"]
        assert update == {"maxSurge": 1, "maxUnavailable": 0}


@pytest.mark.usefixtures("region")
class TestWorkshop:
    """Nodes in a cluster that exists."""

    def test_nodes_join_with_the_clusters_version_in_its_subnets_that_offer_the_type(
        self, run_program: Run, region: Aws
    ) -> None:
        recorder = run_program(stack_values("workshop"))
        group = only(recorder, "eks/nodeGroup:NodeGroup")
        assert (group["clusterName"], group["version"]) == ("neuron-workshop", "1.35")
        assert group["releaseVersion"] == "1.35.5-20260625"
        described = region.ec2.describe_subnets(SubnetIds=group["subnetIds"])["Subnets"]
        assert {one["AvailabilityZoneId"] for one in described} == {"usw2-az1", "usw2-az4"}
        assert not recorder.of_type("eks:index:Cluster")
        assert not recorder.of_type(":Vpc")

    def test_the_kubeconfig_holds_no_credential(self, run_program: Run) -> None:
        provider = only(run_program(stack_values("workshop")), "providers:kubernetes")
        user = json.loads(provider["kubeconfig"])["users"][0]["user"]
        assert user["exec"]["args"][:4] == ["--region", "us-west-2", "eks", "get-token"]
        assert user.keys() == {"exec"}

    def test_only_the_listed_add_ons_are_installed(self, run_program: Run) -> None:
        addons = run_program(stack_values("workshop")).of_type(":Addon")
        names = [one.inputs["addonName"] for one in addons]
        assert names == ["aws-mountpoint-s3-csi-driver", "eks-pod-identity-agent"]

    def test_the_workshops_own_scheduler_setting_can_be_reproduced(self, run_program: Run) -> None:
        values = stack_values("workshop")
        repository = "public.ecr.aws/eks-distro/kubernetes/kube-scheduler"
        values["accelerator"] = {
            "schedulerExtension": "always",
            "kubeSchedulerImage": f"{repository}:v1.35.2-eks-1-35-8",
            "nodeProblemDetector": "none",
        }
        recorder = run_program(values)
        chart = only(recorder, "helm.sh/v4:Chart")["values"]
        image = {"repository": repository, "tag": "v1.35.2-eks-1-35-8"}
        resources = {"requests": {"cpu": "100m"}, "limits": {"memory": "512Mi"}}
        assert chart["scheduler"]["customScheduler"] == {"enabled": True, "image": image, "resources": resources}
        assert chart["npd"]["enabled"] is False
        assert not [one for one in recorder.of_type(":Namespace") if "health" in one.name]
        assert only(recorder, ":Deployment")["spec"]["template"]["spec"]["schedulerName"] == "my-scheduler"
        assert not [one for one in recorder.of_type(":PodIdentityAssociation") if "recovery" in one.name]

    def test_faults_that_only_aws_knows_come_together_and_nothing_is_registered(self, run_program: Run) -> None:
        values = stack_values("workshop")
        values["nodeGroups"][0]["create"]["amiRelease"] = "20260618"
        values["cluster"]["addons"]["eks-pod-identity-agent"] = "v0.0.1"
        with pytest.raises(pulumi.RunError) as failure:
            run_program(values)
        heading, *lines = str(failure.value).splitlines()
        assert heading == "2 faults in the configuration of stack local; nothing was changed"
        assert {line.partition(":")[0] for line in lines} == {
            "cluster.addons.eks-pod-identity-agent",
            "nodeGroups[0].create.amiRelease",
        }

    def test_a_missing_permission_is_one_line_without_a_traceback(
        self,
        run_program: Run,
        server: AwsStandIn,  # noqa: F811 - the fixture above
    ) -> None:
        server.reply("DescribeSubnets", ec2_error("UnauthorizedOperation", "You are not authorized", 403))
        with pytest.raises(pulumi.RunError) as failure:
            run_program(stack_values("workshop"))
        server.reply("DescribeSubnets", MOTO)
        heading, line = str(failure.value).splitlines()
        assert heading == "AWS gave no answer about stack local; nothing was changed"
        assert line.endswith("allow the IAM action ec2:DescribeSubnets")


def test_a_preview_asks_only_what_its_iam_policy_allows(
    run_program: Run,
    region: Aws,  # noqa: ARG001 - what the program asks
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = set()
    call: Callable[..., dict[str, Any]] = vars(BaseClient)["_make_api_call"]

    def record(client: BaseClient, operation: str, arguments: dict[str, Any]) -> dict[str, Any]:
        service = client.meta.service_model
        asked.add(f"{service.signing_name}:{operation}")
        return call(client, operation, arguments)

    monkeypatch.setattr(BaseClient, "_make_api_call", record)
    for stack in ("inf2-prod", "workshop"):
        run_program(stack_values(stack), outputs=EKS_OUTPUTS)
    allowed = {action for statement in PREVIEW for action in statement.actions}
    assert {"ssm:GetParameters", "eks:DescribeCluster", "ec2:DescribeSubnets"} <= asked
    assert asked <= allowed


def test_the_serving_half_deploys_to_the_cluster_that_the_platform_half_exports(run_program: Run) -> None:
    kubeconfig = '{"from": "platform"}'
    exported = {"outputs": {"cluster": {"name": "neuron-serving-platform", "kubeconfig": kubeconfig}}}
    recorder = run_program(stack_values("serving"), outputs={"pulumi:pulumi:StackReference": exported})
    assert only(recorder, "providers:kubernetes")["kubeconfig"] == kubeconfig
    assert len(recorder.of_type(":ExistingNodeGroup")) == 2
    assert len(recorder.of_type(":Deployment")) == 2
    assert {one.type.split(":")[1].split("/")[0] for one in recorder.resources if one.type.startswith("aws:")} == {
        *("s3", "iam", "eks")
    }, "the model cache alone"
    associations = recorder.of_type(":PodIdentityAssociation")
    assert {one.inputs["clusterName"] for one in associations} == {"neuron-serving-platform"}
    assert not recorder.of_type(":NodeGroup")


def test_a_stack_that_exports_no_cluster_is_named(run_program: Run) -> None:
    exported: dict[str, Any] = {"outputs": {"urls": {}}}
    with pytest.raises(pulumi.RunError, match=r"^cluster\.stack: found organization/neuron-serving/platform, which"):
        run_program(stack_values("serving"), outputs={"pulumi:pulumi:StackReference": exported})
