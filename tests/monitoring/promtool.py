"""Runs rules of this program through the real promtool, against series that a test writes down."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import yaml

from components.monitoring.observed import ObservedServer
from components.monitoring.rules import EVALUATION_INTERVAL, rule_groups
from tools.toolchain import ensure

RUNBOOK = "https://example.com/docs/alerts.md"
TINYLLAMA = ObservedServer(
    name="tinyllama",
    namespace="vllm",
    max_num_seqs=4,
    first_token_slo_seconds=1.0,
    pod_usd_per_hour=1.34,
    publishes=True,
)
# By name and labels; values in promtool's notation, one each scrape.
Series = Mapping[str, str]
# Alerts that are pending or firing, by name.
States = Mapping[str, str]
SCRAPE_SECONDS = 15


def for_ever(value: float) -> str:
    """The same value at every scrape."""
    return f"{value:g}x1000"


def then(*parts: tuple[float, int], last: float) -> str:
    """Values that hold for some seconds each, then the last one."""
    held = [f"{value:g}x{seconds // SCRAPE_SECONDS - 1}" for value, seconds in parts]
    return " ".join([*held, for_ever(last)])


def write_rules(folder: Path, servers: Sequence[ObservedServer] = (TINYLLAMA,)) -> Path:
    """The rules of these servers as Prometheus reads them."""
    file = folder / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": rule_groups(servers, RUNBOOK)}))
    return file


def run_promtool(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    """promtool with these arguments."""
    promtool = ensure(["promtool"], report=lambda _: None).path("promtool")
    return subprocess.run([promtool, *arguments], capture_output=True, text=True, timeout=120, check=False)


def expect(
    folder: Path,
    series: Series,
    moments: Mapping[int, States],
    *,
    rendered: Sequence[object] = (),
    evaluation_interval: str = EVALUATION_INTERVAL,
) -> None:
    """Fail unless exactly these alerts are pending or firing, so many seconds after the series begin.

    `rendered` are promtool's own tests of alerts with their labels and annotations.
    """
    test = {
        "interval": f"{SCRAPE_SECONDS}s",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "alert_rule_test": list(rendered),
        "promql_expr_test": [
            {
                "expr": "max by (alertname, alertstate) (ALERTS)",
                "eval_time": f"{seconds}s",
                "exp_samples": [
                    {"labels": f'{{alertname="{name}", alertstate="{state}"}}', "value": 1}
                    for name, state in states.items()
                ],
            }
            for seconds, states in moments.items()
        ],
    }
    rules = {"rule_files": [str(write_rules(folder))], "evaluation_interval": evaluation_interval}
    file = folder / "test.yaml"
    file.write_text(yaml.safe_dump(rules | {"tests": [test]}))
    result = run_promtool("test", "rules", file)
    if result.returncode != 0:
        pytest.fail(result.stdout + result.stderr)
