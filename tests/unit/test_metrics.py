"""Queries about model servers; tests/monitoring runs them in a real Prometheus against each image line."""

import pytest

from neuron import metrics
from neuron.images import IMAGE_LINES, ImageLine

SERVER = metrics.of_server("vllm", "tinyllama")


@pytest.mark.parametrize("line", IMAGE_LINES.values(), ids=IMAGE_LINES.keys())
def test_the_time_between_tokens_is_asked_for_under_the_name_of_every_line(line: ImageLine) -> None:
    assert f"rate({line.metrics.per_token_seconds}_bucket{{{SERVER}}}[1m])" in metrics.inter_token_latency(0.95, SERVER)


def test_a_selector_names_one_server_by_the_labels_that_queries_keep() -> None:
    assert SERVER == 'namespace="vllm", model_server="tinyllama"'
    assert metrics.queue_length(SERVER) == (f"sum by (namespace, model_server) (vllm:num_requests_waiting{{{SERVER}}})")


def test_a_scaler_sees_an_idle_server_as_zero_and_no_server_as_nothing() -> None:
    query = metrics.scaling_time_to_first_token(0.95, SERVER)
    assert query.startswith("(histogram_quantile(0.95, ")
    assert query.endswith(f" > 0) or 0 * {metrics.queue_length(SERVER)}")
    assert "vector(0)" not in query, "a vanished series must not look like an empty queue"
