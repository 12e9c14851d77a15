"""The program with model servers that scale, and with nodes that Karpenter makes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from components.lookups.aws import Aws
from neuron.metrics import of_server
from neuron.scaling import SIGNALS
from policy.rules import RULES
from tests.aws.conftest import account, environment, server  # noqa: F401
from tests.program.conftest import Recorder, stack_values
from tests.program.test_aws_stacks import only, region  # noqa: F401
from tests.program.test_policies import verdicts

Run = Callable[..., Recorder]


def scaled_values(directory: Path, kind: str) -> dict[str, Any]:
    """The local stack with a server that scales from one replica to three, and a node to spare."""
    values = stack_values("local")
    kubeconfig = directory / "kubeconfig"
    kubeconfig.write_text("{}")
    values["cluster"]["kubeconfig"] = str(kubeconfig)
    values["nodeGroups"][0]["nodes"] = 4
    values["autoscaler"] = {"kind": kind}
    values["serving"][0]["autoscaling"] = {"maxReplicas": 3}
    return values


@pytest.fixture(scope="module")
def with_keda(run_program: Run, tmp_path_factory: pytest.TempPathFactory) -> Recorder:
    """A server that KEDA scales, with more of them in working hours."""
    values = scaled_values(tmp_path_factory.mktemp("keda"), "keda")
    hours = {"start": "0 8 * * 1-5", "end": "0 20 * * 1-5", "timeZone": "Asia/Seoul", "replicas": 2}
    values["serving"][0]["autoscaling"]["schedule"] = [hours]
    return run_program(values)


@pytest.fixture(scope="module")
def with_adapter(run_program: Run, tmp_path_factory: pytest.TempPathFactory) -> Recorder:
    """The same server, scaled by a HorizontalPodAutoscaler on the metrics of prometheus-adapter."""
    return run_program(scaled_values(tmp_path_factory.mktemp("adapter"), "prometheus-adapter"))


@pytest.fixture(scope="module")
def with_karpenter(run_program: Run, region: Aws) -> Recorder:  # noqa: ARG001, F811 - what the program asks
    """The stack inf2-elastic: four nodes that Karpenter makes, as many as the quota holds, and a model cache in S3."""
    values = stack_values("inf2-elastic")
    named = {"aws:iam/instanceProfile:InstanceProfile": {"name": "nodes"}}
    return run_program(values, outputs={"eks:index:Cluster": {"kubeconfigJson": "{}"}, **named})


def broken_rules(recorder: Recorder) -> list[str]:
    """What the pack says, but for buckets: it finds a bucket's companions by references, which mocks do not have."""
    rules = [rule for rule in RULES if rule.id != "private-model-bucket"]
    return [text for rule in rules for one in verdicts(rule, recorder) for text in one.violations]


def custom(recorder: Recorder, kind: str) -> dict[str, Any]:
    """The inputs of the only custom resource of that kind."""
    (found,) = [one for one in recorder.resources if one.inputs.get("kind") == kind and "spec" in one.inputs]
    return found.inputs


def test_keda_scales_the_deployment_and_the_program_leaves_its_replicas_alone(
    with_keda: Recorder,
) -> None:
    assert "replicas" not in only(with_keda, "apps/v1:Deployment")["spec"]
    spec = custom(with_keda, "ScaledObject")["spec"]
    assert spec["scaleTargetRef"] == {"name": "tinyllama-0a1b2c3d"}
    assert (spec["minReplicaCount"], spec["maxReplicaCount"]) == (1, 3)
    assert spec["fallback"] == {"failureThreshold": 3, "replicas": 1, "behavior": "currentReplicasIfHigher"}
    behavior = spec["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    assert behavior["scaleUp"]["stabilizationWindowSeconds"] == 0
    assert behavior["scaleDown"]["stabilizationWindowSeconds"] == 429
    assert behavior["scaleDown"]["policies"] == [{"type": "Pods", "value": 1, "periodSeconds": 80}]


def test_every_trigger_asks_for_this_servers_series_and_takes_none_for_an_error(
    with_keda: Recorder,
) -> None:
    *triggers, _ = custom(with_keda, "ScaledObject")["spec"]["triggers"]
    selector = of_server("vllm", "tinyllama")
    assert [one["metadata"]["query"] for one in triggers] == [signal.query(selector) for signal in SIGNALS]
    assert [one["metadata"]["threshold"] for one in triggers] == ["16", "32", "1"]
    assert {one["metadata"]["ignoreNullValues"] for one in triggers} == {"false"}
    assert {one["metricType"] for one in triggers} == {"AverageValue"}
    address = "http://kube-prometheus-stack-prometheus.monitoring.svc:9090"
    assert {one["metadata"]["serverAddress"] for one in triggers} == {address}


def test_a_schedule_raises_the_minimum_for_its_hours(with_keda: Recorder) -> None:
    *_, cron = custom(with_keda, "ScaledObject")["spec"]["triggers"]
    assert cron["type"] == "cron"
    assert cron["metadata"] == {
        "timezone": "Asia/Seoul",
        "start": "0 8 * * 1-5",
        "end": "0 20 * * 1-5",
        "desiredReplicas": "2",
    }


def test_prometheus_adapter_serves_the_metrics_that_the_autoscaler_asks_for(
    with_adapter: Recorder,
) -> None:
    chart = only(with_adapter, "helm.sh/v4:Chart")
    assert chart["namespace"] in [one.inputs["metadata"]["name"] for one in with_adapter.of_type("core/v1:Namespace")]
    rules = chart["values"]["rules"]["external"]
    spec = only(with_adapter, ":HorizontalPodAutoscaler")["spec"]
    asked = [one["external"]["metric"] for one in spec["metrics"]]
    assert [one["name"] for one in asked] == [rule["name"]["as"] for rule in rules]
    assert {one["selector"]["matchLabels"]["model_server"] for one in asked} == {"tinyllama"}
    assert [one["external"]["target"]["averageValue"] for one in spec["metrics"]] == ["16", "32", "1"]
    assert all("<<.LabelMatchers>>" in rule["metricsQuery"] for rule in rules)
    assert not [one for one in with_adapter.resources if one.inputs.get("kind") == "ScaledObject"]


def test_every_rule_passes_a_stack_that_scales(with_keda: Recorder, with_adapter: Recorder) -> None:
    assert broken_rules(with_keda) == []
    assert broken_rules(with_adapter) == []


class TestKarpenter:
    """Nodes that come when pods wait for them."""

    def test_the_pool_has_one_type_and_the_groups_nodes_as_its_limit(self, with_karpenter: Recorder) -> None:
        assert not [one for one in with_karpenter.of_type("eks/nodeGroup:NodeGroup") if one.name == "inferentia"]
        spec = custom(with_karpenter, "NodePool")["spec"]
        assert spec["limits"] == {"cpu": "16", "aws.amazon.com/neuron": "4"}
        assert spec["disruption"]["consolidationPolicy"] == "WhenEmpty"
        node = spec["template"]["spec"]
        assert {one["key"]: one["values"] for one in node["requirements"]} == {
            "node.kubernetes.io/instance-type": ["inf2.xlarge"],
            "karpenter.sh/capacity-type": ["on-demand"],
        }
        assert node["expireAfter"] == "Never"
        annotations = only(with_karpenter, "apps/v1:Deployment")["spec"]["template"]["metadata"]["annotations"]
        assert annotations == {"karpenter.sh/do-not-disrupt": "true"}

    def test_nodes_wait_for_the_driver_that_mounts_the_model_cache(self, with_karpenter: Recorder) -> None:
        (taint,) = custom(with_karpenter, "NodePool")["spec"]["template"]["spec"]["startupTaints"]
        assert taint == {"key": "s3.csi.aws.com/agent-not-ready", "value": "NotReady", "effect": "NoExecute"}

    def test_its_nodes_are_pinned_encrypted_and_in_subnets_that_offer_the_type(self, with_karpenter: Recorder) -> None:
        spec = custom(with_karpenter, "EC2NodeClass")["spec"]
        assert spec["amiSelectorTerms"] == [{"alias": "al2023@v20260625"}]
        assert spec["instanceProfile"] == "nodes"
        assert spec["securityGroupSelectorTerms"] == [{"tags": {"aws:eks:cluster-name": "neuron-serving-local"}}]
        assert len(spec["subnetSelectorTerms"]) == 3
        assert spec["metadataOptions"]["httpTokens"] == "required"
        assert spec["blockDeviceMappings"][0]["ebs"]["encrypted"] is True

    def test_the_controller_knows_its_cluster_and_may_touch_its_own_nodes_only(self, with_karpenter: Recorder) -> None:
        (chart,) = [one.inputs for one in with_karpenter.of_type("helm.sh/v4:Chart") if one.name == "karpenter"]
        assert (chart["chart"], chart["version"]) == ("oci://public.ecr.aws/karpenter/karpenter", "1.14.1")
        assert chart["values"]["settings"]["clusterName"] == "neuron-serving-local"
        statements = json.loads(only(with_karpenter, "iam/rolePolicy:RolePolicy", "karpenter")["policy"])["Statement"]
        (terminates,) = [one for one in statements if "ec2:TerminateInstances" in one["Action"]]
        tags = terminates["Condition"]["StringEquals"]
        assert tags == {"aws:ResourceTag/kubernetes.io/cluster/neuron-serving-local": "owned"}
        assert len(with_karpenter.of_type(":EventRule")) == len(with_karpenter.of_type(":EventTarget")) == 4
        assert only(with_karpenter, ":AccessEntry", "karpenter-node")["type"] == "EC2_LINUX"

    def test_every_rule_passes(self, with_karpenter: Recorder) -> None:
        assert broken_rules(with_karpenter) == []
