"""Start-up times: the measured model exactly, others by their size."""

from neuron.startup import COLD, WARM, StartUp, start_up
from tests.unit.builders import model


def test_the_measured_model_starts_as_measured() -> None:
    assert start_up(model(), cached=False) == COLD
    assert start_up(model(), cached=True) == WARM
    assert (COLD.total_seconds, WARM.total_seconds) == (249, 41)


def test_a_checkpoint_four_times_the_size_takes_four_times_as_long() -> None:
    assert start_up(model(checkpoint_gb=8.8), cached=True) == StartUp(prepare_seconds=4, server_seconds=148)


def test_a_smaller_checkpoint_is_not_assumed_to_be_faster() -> None:
    assert start_up(model(checkpoint_gb=0.5), cached=False) == COLD


def test_a_stated_cold_start_is_believed() -> None:
    assert abs(start_up(model(cold_start_seconds=600), cached=False).total_seconds - 600) <= 1
