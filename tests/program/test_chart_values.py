"""The recorded value keys of charts. Whatever a test has the program register is held against them: see conftest.py."""

import pytest
import yaml

from components.charts import CHARTS
from tests.chart_values import FOLDER, ChartValues, chart_values

KNOWN = ChartValues(
    "1.0.0",
    {"": frozenset({"server", "labels"}), "server": frozenset({"replicas"})},
    {"labels": "chosen by whoever installs"},
)


@pytest.mark.parametrize("key", CHARTS)
def test_every_chart_has_a_record_of_its_pinned_version_that_says_where_it_was_read(key: str) -> None:
    record = yaml.safe_load((FOLDER / f"{key}.yaml").read_text())
    assert chart_values(key).version == CHARTS[key].version
    assert record["sources"]
    for source in record["sources"]:
        assert source.keys() == {"of", "version", "read_from", "date"}


def test_known_keys_pass() -> None:
    assert not list(KNOWN.unknown({"server": {"replicas": 2}, "labels": {"team": "a", "more": {"b": "c"}}}))


@pytest.mark.parametrize(
    ("values", "unknown"),
    [
        ({"sever": {}}, "sever"),
        ({"server": {"replica": 2}}, "server.replica"),
        ({"server": {"replicas": {"minimum": 1}}}, "server.replicas: a level that is not recorded"),
    ],
)
def test_a_key_that_the_chart_does_not_know_is_named_with_its_path(values: dict[str, object], unknown: str) -> None:
    assert list(KNOWN.unknown(values)) == [unknown]
