"""Every query of every dashboard, and those of the scalers, in a real Prometheus that scraped each image line."""

import http.client
import json
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import pytest

from components.monitoring.dashboards import dashboards
from components.monitoring.panels import boards
from components.monitoring.records import slow_share
from neuron import metrics
from neuron.images import IMAGE_LINES
from stand_ins.vllm.application import Settings
from stand_ins.vllm_server import running_server
from tests.monitoring import series
from tests.monitoring.prometheus import Prometheus, running_prometheus, served_page
from tests.monitoring.promtool import TINYLLAMA, write_rules
from tests.processes import wait_until

# A server of each line, under the line's name.
SERVERS = [replace(TINYLLAMA, name=line) for line in IMAGE_LINES]
BOARDS = {board.name: board for board in boards([*SERVERS, TINYLLAMA])}
SERVING_PANELS = {panel.title: panel for panel in BOARDS["serving"].panels}
CLUSTER_PANELS = {panel.title: panel for name in ("neuron", "rollout") for panel in BOARDS[name].panels}

# As neuron-monitor's exporter names them (aws-neuron-sdk, src/examples/neuron-monitor and its user guide).
NEURON_MONITOR_PAGE = """
neuroncore_utilization_ratio{neuroncore="0"} 0.82
neuron_runtime_memory_used_bytes{memory_location="neuron_device"} 3.9e9
execution_latency_seconds{percentile="p50"} 0.0065
execution_status_total{status_type="completed"} 10
execution_errors_total{error_type="generic"} 0
hardware_ecc_events_total{event_type="mem_ecc_uncorrected",neuron_device_index="0"} 0
system_memory_used_bytes 6e9
system_memory_total_bytes 32e9
system_vcpu_usage_ratio{usage_type="user"} 0.04
"""
_REQUESTS = 6
_SCRAPED_SECONDS = 60


def kube_state_metrics_page() -> str:
    """One healthy server, a pod of it that cannot be scheduled, and one that loads."""
    pending = series.pod(series.NEW_POD, "Pending")
    more = {
        f"kube_pod_status_unschedulable{{{series.NEW_POD}}}": "1",
        f'kube_pod_init_container_status_running{{{series.NEW_POD}, container="model-load"}}': "1",
        f'kube_pod_container_status_restarts_total{{{series.POD}, container="server"}}': "0",
        f"kube_deployment_spec_replicas{{{series.DEPLOYMENT}}}": "2",
        f"kube_deployment_status_replicas_updated{{{series.DEPLOYMENT}}}": "2",
        f"kube_horizontalpodautoscaler_spec_max_replicas{{{series.SCALER}}}": "3",
    }
    listed = {**series.healthy(), **pending, **more}
    lines = [f"{name} {values.split('x')[0]}" for name, values in listed.items() if name.startswith("kube_")]
    return "\n".join([*lines, ""])


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A Prometheus that scraped a server of each line under load, kube-state-metrics and neuron-monitor."""
    folder = tmp_path_factory.mktemp("prometheus")
    with ExitStack() as stack:
        targets = {
            stack.enter_context(served_page(kube_state_metrics_page())): {},
            stack.enter_context(served_page(NEURON_MONITOR_PAGE)): {"node": "a"},
        }
        urls = []
        for line in IMAGE_LINES:
            url = stack.enter_context(running_server(Settings(line=line, max_num_seqs=4)))
            urls.append(url)
            targets[urlsplit(url).netloc] = {"namespace": "vllm", "model_server": line, "pod": f"{line}-0"}
        rules = write_rules(folder, [*SERVERS, TINYLLAMA])
        running = stack.enter_context(running_prometheus(folder, targets, rules))
        # A rate needs a scrape before the growth and one after it; some series begin with the first request.
        for seen in (metrics.WAITING, f"sum by (model_server) ({metrics.FINISHED_REQUESTS})"):
            assert wait_until(partial(has_every_line, running, seen), _SCRAPED_SECONDS)
            load(urls)
        assert wait_until(lambda: has_seen_load(running), _SCRAPED_SECONDS), "no rates after the load"
        yield running


def load(urls: list[str]) -> None:
    """A few requests to each server, more at a time than it has slots."""
    with ThreadPoolExecutor(max_workers=len(urls) * _REQUESTS) as pool:
        statuses = list(pool.map(ask, [url for url in urls for _ in range(_REQUESTS)]))
    assert set(statuses) == {200}


def ask(url: str) -> int:
    """One short completion; its status."""
    body = {"model": Settings().model, "prompt": "one two three", "max_tokens": 10}
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    try:
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        response.read()
        return response.status
    finally:
        connection.close()


def has_seen_load(prometheus: Prometheus) -> bool:
    """Whether the queries that are the last to have data have it for every line."""
    last = (slow_share("1h"), f"sum by (model_server) (rate({metrics.FINISHED_REQUESTS}[1m])) > 0")
    return all(has_every_line(prometheus, expression) for expression in last)


def has_every_line(prometheus: Prometheus, expression: str) -> bool:
    """Whether the expression has a number for each server."""
    return len(numbers(prometheus.query(expression))) == len(SERVERS)


def numbers(result: list[dict[str, Any]]) -> list[float]:
    """The values of a result that are numbers: NaN draws nothing."""
    values = [float(sample["value"][1]) for sample in result]
    return [value for value in values if not math.isnan(value)]


def chosen(expression: str, server: str) -> str:
    """The expression with the dashboard's choices made."""
    return expression.replace("$namespace", "vllm").replace("$model_server", server)


@pytest.mark.parametrize("line", IMAGE_LINES)
@pytest.mark.parametrize("title", SERVING_PANELS)
def test_a_serving_panel_has_data_of_every_image_line(prometheus: Prometheus, title: str, line: str) -> None:
    for query in SERVING_PANELS[title].queries:
        result = prometheus.query(chosen(query.expression, line))
        assert numbers(result), query.expression


@pytest.mark.parametrize("title", CLUSTER_PANELS)
def test_a_panel_about_chips_or_rollouts_has_data(prometheus: Prometheus, title: str) -> None:
    for query in CLUSTER_PANELS[title].queries:
        result = prometheus.query(chosen(query.expression, "tinyllama"))
        assert numbers(result), query.expression


@pytest.mark.parametrize("line", IMAGE_LINES)
def test_a_scaler_gets_one_number_of_every_image_line_and_nothing_of_a_server_that_is_not_there(
    prometheus: Prometheus, line: str
) -> None:
    for ask_for in (
        metrics.queue_length,
        metrics.queue_per_replica,
        lambda selector: metrics.scaling_time_to_first_token(0.95, selector),
    ):
        assert len(numbers(prometheus.query(ask_for(metrics.of_server("vllm", line))))) == 1
        assert prometheus.query(ask_for(metrics.of_server("vllm", "another"))) == []


def test_the_cost_is_that_of_the_formula(prometheus: Prometheus) -> None:
    (query,) = SERVING_PANELS["Cost of a million generated tokens"].queries
    line = next(iter(IMAGE_LINES))
    tokens = prometheus.query(metrics.per_second(metrics.GENERATED_TOKENS, metrics.of_server("vllm", line), "5m"))
    (cost,) = numbers(prometheus.query(chosen(query.expression, line)))
    # The two queries are a moment apart, and the rate falls while its window moves on.
    assert cost == pytest.approx(1.34 / 3600 / numbers(tokens)[0] * 1e6, rel=0.2)


def test_a_stack_without_a_price_has_no_panel_for_one() -> None:
    (serving, *_) = boards([replace(TINYLLAMA, pod_usd_per_hour=None)])
    assert "Cost of a million generated tokens" not in {panel.title for panel in serving.panels}


def test_the_dashboards_ask_what_the_table_of_panels_says() -> None:
    made = dashboards(SERVERS)
    assert made.keys() == BOARDS.keys()
    for name, board in BOARDS.items():
        panels = made[name]["panels"]
        assert isinstance(panels, list)
        asked = [target["expr"] for panel in panels for target in panel["targets"]]
        assert asked == [query.expression for panel in board.panels for query in panel.queries]
        assert len({panel["id"] for panel in panels}) == len(panels)
