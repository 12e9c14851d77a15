"""Rollouts: what is derived from a situation, and that it holds together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuron.errors import ImpossibleInputError
from neuron.images import IMAGE_LINES
from neuron.rollout import (
    STARTUP_BUDGET_MINIMUM_SECONDS,
    OneMoreNode,
    RollingUpdate,
    Rollout,
    Situation,
    derive_rollout,
    resolve_rolling_update,
)
from neuron.startup import COLD, WARM, StartUp

IN_FLIGHT_ABORTED = IMAGE_LINES["nxdi-0.13"]
DRAINS_ITSELF = IMAGE_LINES["plugin-0.24"]


def rollout(
    replicas: int = 1,
    slots: int = 1,
    start: StartUp = WARM,
    longest_request_seconds: int = 30,
    line_name: str = "nxdi-0.13",
) -> Rollout:
    return derive_rollout(Situation(replicas, slots, start, longest_request_seconds, IMAGE_LINES[line_name]))


def test_a_free_slot_lets_the_new_pod_start_first() -> None:
    derived = rollout(replicas=1, slots=2)
    assert derived.update == RollingUpdate(max_surge=1, max_unavailable=0)
    assert derived.outage_seconds == 0
    assert "no outage" in derived.forecast


def test_a_full_pool_replaces_one_pod_at_a_time_while_the_others_serve() -> None:
    derived = rollout(replicas=3, slots=3)
    assert derived.update == RollingUpdate(max_surge=0, max_unavailable=1)
    assert derived.outage_seconds == 0
    assert "2 of 3 keep serving" in derived.forecast


def test_a_single_pod_on_a_full_pool_is_an_outage_of_drain_and_start() -> None:
    derived = rollout(replicas=1, slots=1, start=WARM)
    assert derived.update == RollingUpdate(max_surge=0, max_unavailable=1)
    # 10 s endpoint propagation + 30 s longest request + 2 s exit, then 41 s warm start and half a probe period.
    assert derived.outage_seconds == 10 + 30 + 2 + 41 + 2.5


@pytest.mark.parametrize(
    ("chips", "one_more", "reason"),
    [
        (
            1,
            OneMoreNode("inf2.xlarge", 4, free_vcpus=0),
            "1 of 1 chips in use: the old pod must release its chip before the new one starts; "
            "one more inf2.xlarge needs 4 of 0 free vCPUs",
        ),
        (
            1,
            OneMoreNode("inf2.xlarge", 4, free_vcpus=4),
            "1 of 1 chips in use: the old pod must release its chip before the new one starts; "
            "one more inf2.xlarge needs 4 of 4 free vCPUs and would avoid this",
        ),
        (
            16,
            OneMoreNode("trn2.48xlarge", 192),
            "16 of 16 chips in use: the old pod must release them before the new one starts; "
            "one more trn2.48xlarge would avoid this",
        ),
        (1, None, "1 of 1 chips in use: the old pod must release its chip before the new one starts"),
    ],
)
def test_an_outage_says_what_would_avoid_it_and_what_stands_in_its_way(
    chips: int, one_more: OneMoreNode | None, reason: str
) -> None:
    line = IMAGE_LINES["nxdi-0.13"]
    assert derive_rollout(Situation(1, 1, WARM, 30, line, chips=chips, one_more=one_more)).reason == reason


def test_a_cold_start_lengthens_the_outage_by_the_compilation() -> None:
    assert rollout(start=COLD).outage_seconds - rollout(start=WARM).outage_seconds == 249 - 41


@pytest.mark.parametrize(("replicas", "slots"), [(0, 1), (2, 1)])
def test_a_rollout_of_nothing_or_of_more_than_there_is_room_for_is_impossible(replicas: int, slots: int) -> None:
    with pytest.raises(ImpossibleInputError):
        rollout(replicas=replicas, slots=slots)


def test_the_drain_is_in_the_server_where_the_line_finishes_requests_after_sigterm() -> None:
    inside = rollout(line_name="plugin-0.24").drain
    outside = rollout(line_name="nxdi-0.13").drain
    assert (inside.pre_stop_seconds, inside.shutdown_timeout_seconds) == (10, 30)
    assert (outside.pre_stop_seconds, outside.shutdown_timeout_seconds) == (40, None)


situations = st.builds(
    Situation,
    replicas=st.integers(1, 20),
    slots=st.integers(20, 40),
    start=st.builds(StartUp, st.integers(0, 20_000), st.integers(1, 4_000)),
    longest_request_seconds=st.integers(1, 1_800),
    line=st.sampled_from(list(IMAGE_LINES.values())),
)


@given(situations)
def test_every_deadline_outlasts_what_it_waits_for(situation: Situation) -> None:
    derived = derive_rollout(situation)
    drain = derived.drain
    assert derived.startup.budget_seconds >= max(STARTUP_BUDGET_MINIMUM_SECONDS, situation.start.total_seconds)
    assert drain.grace_seconds > drain.stop_seconds
    assert drain.grace_seconds > drain.pre_stop_seconds + situation.longest_request_seconds
    # A load balancer lets go of a target before its pod is gone, and not before its last request has an answer.
    assert situation.longest_request_seconds <= drain.serving_seconds < drain.stop_seconds
    assert derived.progress_deadline_seconds > drain.grace_seconds + situation.start.total_seconds
    assert derived.await_timeout_seconds >= derived.progress_deadline_seconds


@given(situations)
def test_surge_and_unavailable_are_never_both_zero_and_never_take_more_than_there_is(situation: Situation) -> None:
    update = derive_rollout(situation).update
    assert update.max_surge + update.max_unavailable >= 1
    assert situation.replicas + update.max_surge <= situation.slots


@pytest.mark.parametrize(
    ("max_surge", "max_unavailable", "replicas", "resolved"),
    [
        # Kubernetes' default on one replica: the surge that an accelerator node cannot hold (src, scenario A).
        ("25%", "25%", 1, RollingUpdate(1, 0)),
        ("25%", "25%", 4, RollingUpdate(1, 1)),
        ("50%", "50%", 3, RollingUpdate(2, 1)),
        (0, 1, 1, RollingUpdate(0, 1)),
        # Both resolve to 0: the controller makes unavailable 1.
        ("0%", "10%", 4, RollingUpdate(0, 1)),
    ],
)
def test_percentages_resolve_as_the_deployment_controller_resolves_them(
    max_surge: int | str, max_unavailable: int | str, replicas: int, resolved: RollingUpdate
) -> None:
    assert resolve_rolling_update(max_surge, max_unavailable, replicas) == resolved
