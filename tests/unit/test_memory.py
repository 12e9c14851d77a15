"""The host-memory estimate against the three models that were loaded on trn1.2xlarge (src)."""

import pytest

from neuron.instances import FAMILIES, instance_type
from neuron.memory import container_memory_gib, fit, load_peak_gib, smallest_type_that_fits
from tests.unit.builders import model


@pytest.mark.parametrize(
    ("checkpoint_gb", "loads"),
    [(2.2, True), (12.0, False), (16.0, False)],
    ids=["TinyLlama-1.1B served", "Qwen3-4B was OOM-killed", "Qwen3-8B took the node down"],
)
def test_the_estimate_reproduces_what_happened_on_trn1_2xlarge(checkpoint_gb: float, loads: bool) -> None:
    needed = container_memory_gib(model(checkpoint_gb=checkpoint_gb))
    assert fit(needed, instance_type("trn1.2xlarge")).fits is loads


def test_qwen3_4b_peaks_above_the_28_gib_at_which_it_was_killed() -> None:
    assert load_peak_gib(model(checkpoint_gb=12.0)) > 28


def test_the_smallest_type_that_fits_is_the_one_with_the_least_memory_and_then_the_cheapest() -> None:
    smallest = smallest_type_that_fits(37, FAMILIES)
    assert smallest is not None
    assert smallest.name == "inf2.8xlarge"


def test_the_smallest_type_is_looked_for_in_the_families_that_the_image_runs_on() -> None:
    smallest = smallest_type_that_fits(37, {"trn1"})
    assert smallest is not None
    assert smallest.name == "trn1.32xlarge"


def test_no_type_fits_a_model_larger_than_every_host() -> None:
    assert smallest_type_that_fits(3000, FAMILIES) is None
