"""Dashboards as Grafana reads them, from the table of panels."""

import json
from collections.abc import Sequence
from typing import cast

from grafana_foundation_sdk.builders import dashboard, prometheus, timeseries
from grafana_foundation_sdk.builders.common import VizLegendOptions
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import LegendDisplayMode, LegendPlacement
from grafana_foundation_sdk.models.dashboard import DashboardCursorSync, DataSourceRef, VariableRefresh

from components.monitoring import records
from components.monitoring.observed import ObservedServer
from components.monitoring.panels import Board, Panel, boards
from neuron.metrics import SERVER_LABEL

# Of 24 columns that Grafana has: two panels a row.
_SPAN = 12
_HEIGHT = 8
_DATASOURCE = DataSourceRef(type_val="prometheus", uid="$datasource")


def dashboards(servers: Sequence[ObservedServer]) -> dict[str, dict[str, object]]:
    """The dashboards of a stack by name, as JSON."""
    return {board.name: _dashboard(board) for board in boards(servers)}


def _dashboard(board: Board) -> dict[str, object]:
    builder = (
        dashboard.Dashboard(f"neuron-serving: {board.title}")
        .uid(f"neuron-serving-{board.name}")
        .tags(["neuron-serving"])
        .refresh("30s")
        .time("now-1h", "now")
        .readonly()
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .with_variable(dashboard.DatasourceVariable("datasource").type("prometheus"))
    )
    for label in ("namespace", SERVER_LABEL) if board.by_server else ():
        builder = builder.with_variable(_variable(label))
    for number, panel in enumerate(board.panels, 1):
        builder = builder.with_panel(_panel(panel).id(number))
    return cast(dict[str, object], json.loads(JSONEncoder(sort_keys=True).encode(builder.build())))


def _variable(label: str) -> dashboard.QueryVariable:
    """A choice among the servers of the stack, all of them at first."""
    return (
        dashboard.QueryVariable(label)
        .datasource(_DATASOURCE)
        .query(f"label_values({records.MAX_NUM_SEQS}, {label})")
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .multi(True)
        .include_all(True)
        .all_value(".+")
    )


def _panel(panel: Panel) -> timeseries.Panel:
    legend = VizLegendOptions().display_mode(LegendDisplayMode.LIST).placement(LegendPlacement.BOTTOM).show_legend(True)
    builder = (
        timeseries.Panel()
        .title(panel.title)
        .description(panel.note)
        .datasource(_DATASOURCE)
        .unit(panel.unit)
        .min(0)
        .span(_SPAN)
        .height(_HEIGHT)
        .legend(legend)
    )
    for index, query in enumerate(panel.queries):
        target = prometheus.Dataquery().expr(query.expression).legend_format(query.legend).ref_id(chr(ord("A") + index))
        builder = builder.with_target(target)
    return builder
