"""shared-cache-access-mode: who shares a claim, and who may write the cache."""

from typing import Any

import pytest
from pulumi_policy.proxy import UNKNOWN_BOOLEAN_VALUE, UNKNOWN_NUMBER_VALUE, UNKNOWN_STRING_VALUE

from policy.rules.shared_cache_access_mode import RULE
from tests.policy.fixtures import (
    COMPLIANT_DEPLOYMENT,
    DEPLOYMENT_TYPE,
    POD,
    SERVER,
    SIDECAR,
    Props,
    custom_resource,
    value_at,
    with_value,
    without,
)
from tests.policy.judging import Given, judge, judge_stack

STRATEGY = ("spec", "strategy")
SURGING = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
ACCELERATOR = (*SERVER, "resources", "limits", "aws.amazon.com/neuron")


def cached(mount: Props | None = None, volume: Props | None = None, base: Any = COMPLIANT_DEPLOYMENT) -> Props:
    """The compliant Deployment with the model cache mounted, read-only unless `mount` says otherwise."""
    volume = volume or {"persistentVolumeClaim": {"claimName": "models"}}
    mount = {"name": "models", "mountPath": "/models", "readOnly": True} | (mount or {})
    props = with_value(base, (*POD, "volumes"), [{"name": "models"} | volume])
    return with_value(props, (*SERVER, "volumeMounts"), [mount])


def claim(*modes: str, name: str = "models", namespace: str = "serving") -> Given:
    props = custom_resource("v1", "PersistentVolumeClaim", {"accessModes": list(modes)}, name, namespace)
    return Given("kubernetes:core/v1:PersistentVolumeClaim", props, f"claim-{name}-{namespace}")


def deployment(props: Props) -> Given:
    return Given(DEPLOYMENT_TYPE, props, "server")


def test_the_compliant_deployment_with_a_read_only_cache_passes() -> None:
    assert judge(RULE, COMPLIANT_DEPLOYMENT).passed
    assert judge(RULE, cached()).passed
    assert judge_stack(RULE, deployment(cached()), claim("ReadWriteOnce")).passed


@pytest.mark.parametrize("mode", ["ReadWriteOnce", "ReadWriteOncePod"])
def test_a_second_replica_and_a_surge_cannot_share_a_claim_of_one_node(mode: str) -> None:
    two = deployment(with_value(cached(), ("spec", "replicas"), 2))
    verdict = judge_stack(RULE, two, claim(mode))
    assert f"claim models of mode {mode} is used by 2 replicas" in verdict.violations[0]
    assert verdict.urns == (two.urn,)
    surging = judge_stack(RULE, deployment(with_value(cached(), STRATEGY, SURGING)), claim(mode))
    assert "1 replica and, while it rolls, 1 more" in surging.violations[0]


def test_without_a_strategy_the_surge_of_kubernetes_counts() -> None:
    assert judge_stack(RULE, deployment(without(cached(), STRATEGY)), claim("ReadWriteOnce")).violations
    recreate = with_value(cached(), STRATEGY, {"type": "Recreate"})
    assert judge_stack(RULE, deployment(recreate), claim("ReadWriteOnce")).passed


@pytest.mark.parametrize("modes", [("ReadOnlyMany",), ("ReadWriteMany",), ("ReadWriteOnce", "ReadOnlyMany"), ()])
def test_other_modes_can_be_shared(modes: tuple[str, ...]) -> None:
    props = with_value(cached(), ("spec", "replicas"), 3)
    assert judge_stack(RULE, deployment(props), claim(*modes)).passed


def test_a_claim_of_another_name_or_namespace_is_another_claim() -> None:
    props = with_value(cached(), ("spec", "replicas"), 2)
    others = (claim("ReadWriteOnce", name="logs"), claim("ReadWriteOnce", namespace="other"))
    assert judge_stack(RULE, deployment(props), *others).passed


def test_an_autoscaler_brings_replicas() -> None:
    spec = {"scaleTargetRef": {"kind": "Deployment", "name": "vllm"}, "maxReplicas": 3}
    scaler = Given(
        "kubernetes:autoscaling/v2:HorizontalPodAutoscaler",
        custom_resource("autoscaling/v2", "HorizontalPodAutoscaler", spec),
        "scaler",
    )
    assert judge_stack(RULE, deployment(cached()), claim("ReadWriteOnce"), scaler).violations


def test_claims_of_a_stateful_set_are_one_for_each_replica() -> None:
    spec = {"replicas": 3, "template": value_at(COMPLIANT_DEPLOYMENT, ("spec", "template"))}
    spec["volumeClaimTemplates"] = [{"metadata": {"name": "models"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]
    props = custom_resource("apps/v1", "StatefulSet", spec)
    assert judge_stack(RULE, Given("kubernetes:apps/v1:StatefulSet", props)).passed


def test_a_workload_without_an_accelerator_and_a_job_may_share_what_they_like() -> None:
    props = with_value(without(cached({"readOnly": False}), ACCELERATOR), ("spec", "replicas"), 2)
    assert judge(RULE, props).passed
    assert judge_stack(RULE, deployment(props), claim("ReadWriteOnce")).passed
    pod = value_at(with_value(cached(), STRATEGY, SURGING), ("spec", "template"))
    job = custom_resource("batch/v1", "Job", {"parallelism": 2, "template": pod})
    assert judge_stack(RULE, Given("kubernetes:batch/v1:Job", job), claim("ReadWriteOnce")).passed


@pytest.mark.parametrize(
    "volume",
    [
        {"persistentVolumeClaim": {"claimName": "models"}},
        {"hostPath": {"path": "/models"}},
        {"nfs": {"server": "fs", "path": "/"}},
        {"csi": {"driver": "s3.csi.aws.com"}},
    ],
)
def test_a_server_mounts_the_model_cache_read_only(volume: Props) -> None:
    for read_only in (False, None):
        [message] = judge(RULE, cached({"readOnly": read_only}, volume)).violations
        assert "the model cache is mounted for writing at /models" in message
        assert "Fix: set spec.template.spec.containers[0].volumeMounts[0].readOnly to true" in message
    assert judge(RULE, cached(None, volume)).passed


def test_the_volume_may_say_read_only_as_well() -> None:
    volume = {"persistentVolumeClaim": {"claimName": "models", "readOnly": True}}
    assert judge(RULE, cached({"readOnly": False}, volume)).passed


def test_what_dies_with_the_pod_and_what_holds_no_model_may_be_written() -> None:
    assert judge(RULE, cached({"readOnly": False}, {"emptyDir": {}})).passed
    logs = with_value(
        cached({"readOnly": False, "mountPath": "/var/log", "name": "logs"}),
        (*POD, "volumes", 0),
        {
            "name": "logs",
            "persistentVolumeClaim": {"claimName": "logs"},
        },
    )
    assert judge(RULE, logs).passed


def test_another_container_may_fill_the_cache() -> None:
    mounts = [{"name": "models", "mountPath": "/models"}]
    assert judge(RULE, with_value(cached(), (*SIDECAR, "volumeMounts"), mounts)).passed


def test_unknown_values_are_said_to_be_unjudged_and_break_nothing() -> None:
    verdict = judge(RULE, cached({"readOnly": UNKNOWN_BOOLEAN_VALUE}))
    assert (verdict.violations, "readOnly" in verdict.unjudged) == ((), True)
    for path, value in (
        (("spec", "replicas"), UNKNOWN_NUMBER_VALUE),
        ((*STRATEGY, "rollingUpdate", "maxSurge"), UNKNOWN_NUMBER_VALUE),
        ((*POD, "volumes", 0, "persistentVolumeClaim", "claimName"), UNKNOWN_STRING_VALUE),
    ):
        props = with_value(with_value(cached(), STRATEGY, SURGING), path, value)
        verdict = judge_stack(RULE, deployment(props), claim("ReadWriteOnce"))
        assert verdict.violations == ()
        assert str(path[-1]) in verdict.unjudged
