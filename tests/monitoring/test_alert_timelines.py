"""Alerts over time, by the real promtool: what the measurements saw must be said, and nothing else."""

from pathlib import Path

import pytest

from components.monitoring.alerts import ALERTS
from neuron.images import image_line
from neuron.rollout import Situation, derive_rollout
from neuron.startup import start_up
from tests.monitoring import series
from tests.monitoring.promtool import RUNBOOK, Series, States, expect, for_ever, run_promtool, then, write_rules
from tests.unit.builders import model

PENDING, FIRING = "pending", "firing"


def test_promtool_accepts_every_rule(tmp_path: Path) -> None:
    result = run_promtool("check", "rules", "--lint=all", "--lint-fatal", write_rules(tmp_path))
    assert result.returncode == 0, result.stdout + result.stderr
    assert all(alert.name in write_rules(tmp_path).read_text() for alert in ALERTS)


def test_a_healthy_server_raises_nothing(tmp_path: Path) -> None:
    expect(tmp_path, series.healthy(), {60: {}, 600: {}, 7200: {}}, evaluation_interval="1m")


def test_the_overload_of_the_workshop_is_told_as_it_was(tmp_path: Path) -> None:
    """(src) 12:22:28 none, 12:22:48 three pending, 12:23:48 the backlog firing, 12:24:48 all three firing."""
    # After an hour of an objective that was met.
    began = 3600
    load = {
        series.WAITING: then((0, began + 15), last=28),
        **series.first_tokens(("0.5", 15, began // 15), ("5.0", 75, 500)),
        **series.pod(series.NEW_POD, "Pending"),
    }
    load[f'kube_pod_status_phase{{{series.NEW_POD}, phase="Pending"}}'] = then((0, began + 15), last=1)
    three = ("VLLMQueueBacklog", "VLLMHighTTFT", "VLLMPodPending")
    timeline = {
        began: {},
        began + 20: dict.fromkeys(three, PENDING),
        began + 80: {**dict.fromkeys(three, PENDING), "VLLMQueueBacklog": FIRING},
        began + 140: dict.fromkeys(three, FIRING),
    }
    expect(tmp_path, {**series.healthy(), **load}, timeline)


def test_a_rollout_that_never_ends_is_told_though_no_request_fails(tmp_path: Path) -> None:
    """(src) scenario A: the default strategy on one chip; the new pod waits for the chip of the old one."""
    workshop = Situation(1, 1, start_up(model(), cached=False), 30, image_line("v0-0.9.1"))
    deadline = derive_rollout(workshop).progress_deadline_seconds
    began = 60
    stalled = {
        **series.pod(series.NEW_POD, "Pending"),
        f'kube_pod_status_phase{{{series.NEW_POD}, phase="Pending"}}': then((0, began), last=1),
        f"kube_pod_status_unschedulable{{{series.NEW_POD}}}": then((0, began), last=1),
        series.PROGRESSING_FALSE: then((0, (began + deadline) // 15 * 15), last=1),
    }
    waits = {"VLLMPodPending": PENDING, "NeuronPodPending": PENDING}
    timeline = {
        began - 15: {},
        began + 60: waits,
        began + 150: {**waits, "VLLMPodPending": FIRING},
        began + 300: dict.fromkeys(waits, FIRING),
        began + deadline + 30: dict.fromkeys([*waits, "VLLMRolloutStuck"], FIRING),
    }
    rendered = {
        "alertname": "NeuronPodPending",
        "eval_time": f"{began + 300}s",
        "exp_alerts": [
            {
                "exp_labels": {
                    "severity": "warning",
                    "namespace": "vllm",
                    "pod": "tinyllama-2",
                    "reason": "Unschedulable",
                },
                "exp_annotations": {
                    "summary": "tinyllama-2, which asks for Neuron chips, is Pending: Unschedulable",
                    "description": next(one.meaning for one in ALERTS if one.name == "NeuronPodPending"),
                    "runbook_url": f"{RUNBOOK}#neuronpodpending",
                },
            }
        ],
    }
    expect(tmp_path, {**series.healthy(), **stalled}, timeline, rendered=[rendered])


def test_a_series_that_vanishes_is_missed(tmp_path: Path) -> None:
    vanishing = {series.WAITING: f"0x{600 // 15} stale"}
    absent = "VLLMScalerMetricAbsent"
    expect(tmp_path, {**series.healthy(), **vanishing}, {600: {}, 645: {absent: PENDING}, 705: {absent: FIRING}})


def test_a_server_that_starts_is_no_blind_scaler(tmp_path: Path) -> None:
    starting = {**series.healthy(), series.READY: for_ever(0)}
    del starting[series.WAITING]
    expect(tmp_path, starting, {600: {"VLLMNoReadyPod": FIRING}})


def test_a_pod_that_compiles_is_not_pending_for_the_alert(tmp_path: Path) -> None:
    running = f'kube_pod_init_container_status_running{{{series.NEW_POD}, container="model-load"}}'
    compiling = {**series.pod(series.NEW_POD, "Pending"), running: then((0, 30), (1, 120), last=0)}
    compiling[f'kube_pod_status_phase{{{series.NEW_POD}, phase="Pending"}}'] = then((0, 30), (1, 120), last=0)
    expect(tmp_path, {**series.healthy(), **compiling}, {130: {"ModelCacheMiss": PENDING}, 200: {}})


_OOM = 'reason="OOMKilled"'
_SERVER_CONTAINER = f'{series.POD}, container="server"'
_LOAD = f'{series.POD}, container="model-load"'
_UNCORRECTED = 'node="a", neuron_device_index="0", event_type="mem_ecc_uncorrected"'

CASES: dict[str, tuple[Series, States]] = {
    "a scaler without a metric": ({series.SCALER_INACTIVE: for_ever(1)}, {"VLLMScalerInactive": FIRING}),
    "a scaler that goes up and down every eight minutes": (
        {series.DESIRED: " ".join(["1x31 3x31"] * 15)},
        {"VLLMScalingReversals": FIRING},
    ),
    "a server killed for memory": (
        {
            f"kube_pod_container_status_restarts_total{{{_SERVER_CONTAINER}}}": then((0, 3300), last=1),
            f"kube_pod_container_status_last_terminated_reason{{{_SERVER_CONTAINER}, {_OOM}}}": then((0, 3300), last=1),
        },
        {"ModelServerOutOfMemory": FIRING},
    ),
    "a model that a pod may not compile and does not find": (
        {
            f'kube_pod_status_phase{{{series.POD}, phase="Pending"}}': for_ever(1),
            f"kube_pod_init_container_status_last_terminated_exitcode{{{_LOAD}}}": for_ever(1),
            f'kube_pod_init_container_status_waiting_reason{{{_LOAD}, reason="CrashLoopBackOff"}}': for_ever(1),
            series.READY: for_ever(0),
        },
        dict.fromkeys(["ModelCacheMiss", "VLLMPodPending", "NeuronPodPending", "VLLMNoReadyPod"], FIRING),
    ),
    "an execution that the hardware failed": (
        {'execution_errors_total{node="a", error_type="hardware"}': then((3, 3500), last=4)},
        {"NeuronExecutionErrors": FIRING},
    ),
    "a memory error that was not corrected": (
        {f"hardware_ecc_events_total{{{_UNCORRECTED}}}": then((0, 3000), last=1)},
        {"NeuronUncorrectedMemoryErrors": FIRING},
    ),
    "a node whose plugin does not advertise": ({series.NODE_CHIPS: for_ever(0)}, {"NeuronNodeWithoutChips": FIRING}),
    "nine requests in ten late for an hour": (
        series.first_tokens(("0.5", 5, 20), ("5.0", 45, 900)),
        dict.fromkeys(["VLLMHighTTFT", "VLLMFirstTokenBudgetFast", "VLLMFirstTokenBudgetSlow"], FIRING),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_after_an_hour_exactly_this_fires(case: str, tmp_path: Path) -> None:
    changed, states = CASES[case]
    expect(tmp_path, {**series.healthy(), **changed}, {3600: states}, evaluation_interval="1m")


def test_every_alert_was_seen_firing() -> None:
    """By the tests above: those with a timeline of their own, and the cases."""
    with_timeline = {
        *("VLLMQueueBacklog", "VLLMHighTTFT", "VLLMPodPending", "VLLMRolloutStuck"),
        *("NeuronPodPending", "VLLMScalerMetricAbsent", "VLLMNoReadyPod"),
    }
    assert {alert.name for alert in ALERTS} == with_timeline.union(*(states for _, states in CASES.values()))
