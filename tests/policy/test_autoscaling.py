"""queue-based-autoscaling and autoscaler-owns-replicas: what scales a workload, and who sets its replicas."""

from typing import Any

import pytest
from pulumi_policy.proxy import UNKNOWN_NUMBER_VALUE, UNKNOWN_OBJECT_VALUE, UNKNOWN_STRING_VALUE

from policy.rules.autoscaler_owns_replicas import RULE as OWNS
from policy.rules.queue_based_autoscaling import RULE as QUEUE
from tests.policy.fixtures import (
    COMPLIANT_DEPLOYMENT,
    DEPLOYMENT_TYPE,
    SERVER,
    Props,
    custom_resource,
    with_value,
    without,
)
from tests.policy.judging import Given, judge_stack

TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "vllm"}
REPLICAS = ("spec", "replicas")
SERVING = Given(DEPLOYMENT_TYPE, without(COMPLIANT_DEPLOYMENT, REPLICAS), "server")
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}}
QUERY = "sum(vllm:num_requests_waiting) / count(up)"


def hpa(*metrics: Any, version: str = "v2", namespace: str = "serving", **more: Any) -> Given:
    spec = {"scaleTargetRef": TARGET, "maxReplicas": 3, "metrics": list(metrics), **more}
    props = custom_resource(f"autoscaling/{version}", "HorizontalPodAutoscaler", spec, "scaler", namespace)
    return Given(f"kubernetes:autoscaling/{version}:HorizontalPodAutoscaler", props, "scaler")


def scaled_object(*triggers: Any, target: Props | None = None) -> Given:
    spec = {"scaleTargetRef": target or {"name": "vllm"}, "triggers": list(triggers)}
    return Given(
        "kubernetes:keda.sh/v1alpha1:ScaledObject", custom_resource("keda.sh/v1alpha1", "ScaledObject", spec), "keda"
    )


def prometheus(query: str) -> Props:
    return {"type": "prometheus", "metadata": {"serverAddress": "http://prometheus:9090", "query": query}}


def named(kind: str, name: str) -> Props:
    field = kind.lower()
    return {"type": kind, field: {"metric": {"name": name}, "target": {"type": "AverageValue", "averageValue": "4"}}}


@pytest.mark.parametrize(
    "scaler",
    [
        scaled_object(prometheus(QUERY)),
        scaled_object(
            prometheus("histogram_quantile(0.95, sum(rate(vllm:time_to_first_token_seconds_bucket[1m])) by (le))")
        ),
        scaled_object(prometheus("sum(rate(vllm:generation_tokens_total[1m])) / count(neuroncore_utilization_ratio)")),
        scaled_object({"type": "cpu", "metadata": {"value": "70"}}, prometheus(QUERY)),
        scaled_object({"type": "aws-sqs-queue", "metadata": {"queueURL": "https://sqs/x"}}),
        scaled_object({"type": "cron", "metadata": {"start": "0 8 * * *"}}),
        hpa(named("Pods", "vllm_num_requests_waiting")),
        hpa(named("External", "queue_per_replica")),
        hpa(CPU, named("Object", "requests-per-second")),
        hpa(named("Pods", "my_own_signal")),
    ],
)
def test_queue_latency_and_tokens_are_signals_and_excuse_what_is_beside_them(scaler: Given) -> None:
    assert judge_stack(QUEUE, SERVING, scaler).passed


@pytest.mark.parametrize(
    ("scaler", "named_in_message"),
    [
        (hpa(CPU), "cpu"),
        (hpa({"type": "ContainerResource", "containerResource": {"name": "memory", "container": "server"}}), "memory"),
        (hpa(named("Pods", "neuroncore_utilization_ratio")), "neuroncore_utilization_ratio"),
        (hpa(), "the default where no metric is stated"),
        (hpa(version="v1", targetCPUUtilizationPercentage=70), "CPU"),
        (scaled_object({"type": "cpu", "metadata": {"value": "70"}}), "cpu"),
        (scaled_object({"type": "memory", "metadata": {"value": "70"}}, {"type": "cron", "metadata": {}}), "memory"),
        (scaled_object(prometheus("avg(neuroncore_utilization_ratio)")), "neuroncore_utilization_ratio"),
        (
            scaled_object(
                prometheus(
                    "sum(rate(container_cpu_usage_seconds_total[1m])) / sum(kube_pod_container_resource_requests)"
                )
            ),
            "container_cpu_usage_seconds_total",
        ),
    ],
)
def test_utilisation_alone_is_a_violation(scaler: Given, named_in_message: str) -> None:
    verdict = judge_stack(QUEUE, SERVING, scaler)
    assert "Deployment serving/vllm is scaled by" in verdict.violations[0]
    assert named_in_message in verdict.violations[0]
    assert "9 % of its CPU" in verdict.violations[0]
    assert verdict.urns == (scaler.urn,)


def test_other_workloads_may_scale_on_their_cpu() -> None:
    limits = {"memory": "1Gi"}
    for more in ({}, {"nvidia.com/gpu": 1}):
        web = with_value(SERVING.props, (*SERVER, "resources", "limits"), limits | more)
        assert judge_stack(QUEUE, Given(DEPLOYMENT_TYPE, web), hpa(CPU)).passed
    assert judge_stack(QUEUE, SERVING, hpa(CPU, namespace="other")).passed
    assert judge_stack(
        QUEUE, SERVING, scaled_object({"type": "cpu"}, target={"kind": "StatefulSet", "name": "vllm"})
    ).passed
    assert judge_stack(QUEUE, hpa(CPU)).passed


@pytest.mark.parametrize(
    "scaler",
    [
        hpa(CPU, named("Pods", UNKNOWN_STRING_VALUE)),
        hpa(CPU, {"type": UNKNOWN_STRING_VALUE}),
        scaled_object({"type": "cpu", "metadata": {}}, prometheus(UNKNOWN_STRING_VALUE)),
        scaled_object({"type": "cpu", "metadata": {}}, {"type": UNKNOWN_STRING_VALUE}),
        scaled_object({"type": "cpu"}, target={"name": UNKNOWN_STRING_VALUE}),
    ],
)
def test_a_metric_or_target_that_is_not_known_yet_is_said_to_be_unjudged(scaler: Given) -> None:
    for rule in (QUEUE,):
        verdict = judge_stack(rule, SERVING, scaler)
        assert verdict.violations == ()
        assert scaler.name in verdict.unjudged


@pytest.mark.parametrize("metrics", [UNKNOWN_OBJECT_VALUE])
def test_unknown_metrics_are_no_default(metrics: str) -> None:
    scaler = hpa()
    unknown = Given(scaler.type, with_value(scaler.props, ("spec", "metrics"), metrics), "scaler")
    verdict = judge_stack(QUEUE, SERVING, unknown)
    assert (verdict.violations, "spec.metrics" in verdict.unjudged) == ((), True)


STATING = Given(DEPLOYMENT_TYPE, with_value(COMPLIANT_DEPLOYMENT, REPLICAS, 2), "server")


@pytest.mark.parametrize("scaler", [hpa(CPU), scaled_object(prometheus(QUERY))])
def test_the_target_of_an_autoscaler_states_no_replicas(scaler: Given) -> None:
    assert judge_stack(OWNS, SERVING, scaler).passed
    verdict = judge_stack(OWNS, STATING, scaler)
    assert f"spec.replicas is set to 2, and {scaler.props['kind']} serving/" in verdict.violations[0]
    assert verdict.urns == (STATING.urn,)
    assert judge_stack(OWNS, STATING).passed


@pytest.mark.parametrize("path", ["spec.replicas", "spec", "*", "spec.*", 'spec["replicas"]', '["spec"]["replicas"]'])
def test_a_resource_that_ignores_changes_to_its_replicas_may_state_them(path: str) -> None:
    ignoring = Given(DEPLOYMENT_TYPE, STATING.props, "server", ignore_changes=(path,))
    assert judge_stack(OWNS, ignoring, hpa(CPU)).passed


@pytest.mark.parametrize("path", ["spec.template", "metadata", "spec.replicasets"])
def test_ignoring_something_else_does_not_help(path: str) -> None:
    assert judge_stack(
        OWNS, Given(DEPLOYMENT_TYPE, STATING.props, "server", ignore_changes=(path,)), hpa(CPU)
    ).violations


def test_what_the_api_server_filled_in_was_not_stated() -> None:
    def after_an_update(applied: dict[str, Any]) -> Given:
        """The Deployment as it is, with the fields that the program applied."""
        update = {"manager": "kube-controller-manager", "operation": "Update", "fieldsV1": {"f:status": {}}}
        scaled = {"operation": "Apply", "subresource": "scale", "fieldsV1": {"f:spec": {"f:replicas": {}}}}
        apply = {"manager": "pulumi-kubernetes-1a2b", "operation": "Apply", "fieldsV1": {"f:spec": applied}}
        props = with_value(STATING.props, ("metadata", "managedFields"), [update, scaled, apply])
        return Given(DEPLOYMENT_TYPE, props, "server")

    assert judge_stack(OWNS, after_an_update({"f:template": {}}), hpa(CPU)).passed
    assert judge_stack(OWNS, after_an_update({"f:template": {}, "f:replicas": {}}), hpa(CPU)).violations


def test_another_namespace_kind_or_name_is_another_target() -> None:
    assert judge_stack(OWNS, STATING, hpa(CPU, namespace="other")).passed
    assert judge_stack(OWNS, STATING, scaled_object(target={"name": "other"})).passed
    assert judge_stack(OWNS, STATING, scaled_object(target={"kind": "StatefulSet", "name": "vllm"})).passed


def test_zero_replicas_are_stated_too_and_unknown_ones_are_not_judged() -> None:
    assert judge_stack(OWNS, Given(DEPLOYMENT_TYPE, with_value(STATING.props, REPLICAS, 0)), hpa(CPU)).violations
    unknown = Given(DEPLOYMENT_TYPE, with_value(STATING.props, REPLICAS, UNKNOWN_NUMBER_VALUE), "server")
    verdict = judge_stack(OWNS, unknown, hpa(CPU))
    assert (verdict.violations, "spec.replicas" in verdict.unjudged) == ((), True)
