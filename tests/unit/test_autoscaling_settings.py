"""Autoscaling in a stack file: what is refused, and what the plans become."""

from typing import Any

import pytest

from components.configuration import parse_settings
from components.plans import autoscaler_plans, scaler_plan, serving_plans
from components.settings import Settings
from tests.unit.configuration import changed, encoded, lines

SCALED: dict[str, Any] = {"autoscaler": {}, "nodeGroups.0.nodes": 4, "serving.0.autoscaling": {"maxReplicas": 3}}


def settings(changes: dict[str, Any]) -> Settings:
    return parse_settings(encoded(changed(changes)))


def test_the_replicas_are_the_fewest_and_left_to_the_scaler() -> None:
    parsed = settings(SCALED)
    (plan,) = serving_plans(parsed)
    scaler = scaler_plan(plan, parsed)
    assert scaler is not None
    assert (scaler.scaling.minimum, scaler.scaling.maximum) == (1, 3)
    assert [one.settings.kind for one in autoscaler_plans(parsed)] == ["keda"]


def test_a_cluster_that_has_a_scaler_gets_none() -> None:
    assert autoscaler_plans(settings({**SCALED, "autoscaler": {"install": False}})) == ()
    assert autoscaler_plans(settings({})) == ()


def test_a_rollout_never_counts_on_a_slot_that_the_scaler_may_fill() -> None:
    (with_spare,) = serving_plans(settings(SCALED))
    assert with_spare.rollout.update.max_surge == 1
    (without,) = serving_plans(settings({**SCALED, "nodeGroups.0.nodes": 3}))
    assert without.rollout.update.max_surge == 0
    # One replica serves where there is no load, and none while it is replaced.
    assert without.rollout.outage_seconds > 0


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"serving.0.autoscaling": {"maxReplicas": 2}},
            "serving[0].autoscaling: found a section, in a stack without an autoscaler; "
            "allowed: autoscaling beside autoscaler, which scales it; fix: set autoscaler: {}",
        ),
        (
            {"autoscaler": {"kind": ["keda", "prometheus-adapter"]}},
            "autoscaler.kind: found a list; allowed: 'keda' or 'prometheus-adapter'; fix: set one of these",
        ),
        (
            {"autoscaler": {"prometheusUrl": "prometheus"}},
            'autoscaler.prometheusUrl: found "prometheus"; allowed: a scheme, a host and a port, such as '
            "http://prometheus.example:9090; fix: write it in that form",
        ),
        (
            {"autoscaler": {}, "serving.0.replicas": 2, "serving.0.autoscaling": {"maxReplicas": 1}},
            "serving[0].autoscaling.maxReplicas: found 1, below replicas (2); allowed: 2 or more; "
            "fix: raise it, or lower replicas",
        ),
        (
            {"autoscaler": {}, "serving.0.autoscaling": {"maxReplicas": 3}},
            "serving[0].autoscaling.maxReplicas: found 3 pods that ask for 3 chips in node group inferentia; "
            "allowed: 2 chips (2 x inf2.xlarge); fix: lower maxReplicas or raise nodes of the node group",
        ),
        (
            {
                "autoscaler": {},
                "serving.0.autoscaling": {
                    "maxReplicas": 2,
                    "schedule": [{"start": "0 8 * * 1-5", "end": "0 20 * * 1-5", "replicas": 3}],
                },
            },
            "serving[0].autoscaling.schedule[0].replicas: found 3; allowed: more than replicas (1), up to maxReplicas "
            "(2); fix: set it to 2, or raise maxReplicas",
        ),
        (
            {
                "autoscaler": {"kind": "prometheus-adapter"},
                "serving.0.autoscaling": {
                    "maxReplicas": 2,
                    "schedule": [{"start": "0 8 * * 1-5", "end": "0 20 * * 1-5", "replicas": 2}],
                },
            },
            "serving[0].autoscaling.schedule: found a schedule beside prometheus-adapter; allowed: one with keda; "
            "fix: drop one",
        ),
    ],
    ids=lambda value: "" if isinstance(value, str) else " ".join(value),
)
def test_a_fault_is_one_line(changes: dict[str, Any], line: str) -> None:
    assert lines(changes) == [line]
