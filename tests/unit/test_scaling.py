"""What a model server scales on, between which bounds, and how fast."""

import pytest

from neuron.errors import ImpossibleInputError
from neuron.images import IMAGE_LINES
from neuron.rollout import derive_drain
from neuron.scaling import FIRST_TOKEN, RUNNING, WAITING, Scaling, derive_scaling, waiting_target
from neuron.startup import start_up
from tests.unit.builders import model

DRAIN = derive_drain(IMAGE_LINES["nxdi-0.13"], longest_request_seconds=30)


def scaling(*, minimum: int = 1, maximum: int = 3, checkpoint_gb: float = 2.2) -> Scaling:
    return derive_scaling(minimum, maximum, model(checkpoint_gb=checkpoint_gb), DRAIN)


def test_the_queue_target_is_the_measured_one_for_the_measured_model() -> None:
    targets = {one.signal: one.per_replica for one in scaling().targets}
    assert targets == {WAITING: 2, RUNNING: 4, FIRST_TOKEN: 1.0}


@pytest.mark.parametrize(("max_num_seqs", "target"), [(1, 1), (4, 2), (32, 16)])
def test_as_many_may_wait_as_half_of_those_that_are_served(max_num_seqs: int, target: int) -> None:
    assert waiting_target(max_num_seqs) == target


@pytest.mark.parametrize("checkpoint_gb", [2.2, 16, 140])
def test_it_scales_down_slower_than_a_cold_start_as_far_as_kubernetes_can(checkpoint_gb: float) -> None:
    derived = scaling(checkpoint_gb=checkpoint_gb)
    cold = start_up(model(checkpoint_gb=checkpoint_gb), cached=False).total_seconds
    assert derived.scale_down_window_seconds > cold or derived.scale_down_window_seconds == 3600
    assert derived.scale_down_period_seconds == DRAIN.grace_seconds


def test_the_forecast_names_bounds_targets_and_times() -> None:
    assert scaling().forecast == (
        "scales between 1 and 3 replicas on 2 waiting, 4 running, 1 first-token for each: up at once, down by one "
        "every 80 s after 429 s without need"
    )


@pytest.mark.parametrize(("minimum", "maximum"), [(0, 3), (3, 2)])
def test_bounds_that_are_none_are_impossible(minimum: int, maximum: int) -> None:
    with pytest.raises(ImpossibleInputError, match=f"found a scale from {minimum} to {maximum}"):
        scaling(minimum=minimum, maximum=maximum)


def test_every_query_is_about_the_selected_series_only() -> None:
    for target in scaling().targets:
        query = target.signal.query('model_server="one"')
        assert query.count("{") == query.count('{model_server="one"}') > 0
