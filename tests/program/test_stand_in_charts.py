"""The stand-in charts against the table of charts: the same names and versions, and no unknown key passes."""

import json
from typing import Any

import pytest
import yaml

from components.charts import CHARTS, Chart
from stand_ins import CHARTS as FOLDER
from tests.program.conftest import Recorder, Registered

each_chart = pytest.mark.parametrize("chart", CHARTS.values(), ids=CHARTS.keys())


@each_chart
def test_every_chart_of_the_table_has_a_stand_in_of_its_name_and_version(chart: Chart) -> None:
    described = yaml.safe_load((FOLDER / chart.name / "Chart.yaml").read_text())
    assert (described["name"], described["version"]) == (chart.name, chart.version)
    assert "stand-in" in described["description"]


@each_chart
def test_a_stand_in_has_a_template_and_refuses_keys_that_the_real_chart_does_not_know(chart: Chart) -> None:
    folder = FOLDER / chart.name
    assert list(folder.glob("templates/*.yaml"))
    schema: dict[str, Any] = json.loads((folder / "values.schema.json").read_text())
    assert schema["additionalProperties"] is False
    assert "$comment" in schema, "says where the keys come from"
    assert (yaml.safe_load((folder / "values.yaml").read_text()) or {}).keys() <= schema["properties"].keys()


def test_there_is_no_stand_in_for_a_chart_that_nobody_installs() -> None:
    assert {path.name for path in FOLDER.iterdir() if path.is_dir()} == {chart.name for chart in CHARTS.values()}


def test_whatever_a_test_has_the_program_install_is_held_against_the_schema() -> None:
    recorder = Recorder()
    values = {"devicePlugin": {"enabled": True, "resource": {}}}
    recorder.resources.append(Registered("kubernetes:helm.sh/v4:Chart", "neuron", {"values": values}))
    (refused,) = recorder.refused_chart_values()
    assert refused.startswith("neuron: $.devicePlugin: ")
    assert "'resource' was unexpected" in refused
