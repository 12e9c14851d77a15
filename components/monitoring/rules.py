"""The PrometheusRule of a stack: constants and joins as recording rules, then the alerts."""

from collections.abc import Sequence
from typing import Any

from components.monitoring import records
from components.monitoring.alerts import ALERTS, Alert
from components.monitoring.observed import ObservedServer

# Twice within the shortest time that an alert of seconds must hold.
EVALUATION_INTERVAL = "15s"


def rule_groups(servers: Sequence[ObservedServer], runbook_url: str) -> list[dict[str, Any]]:
    """The groups; rules of a group are evaluated in order, so alerts see what was recorded just before."""
    return [
        _group("neuron-serving.records", [*records.facts(servers), *records.joins(), *records.slow_shares()]),
        _group("neuron-serving.alerts", [_alert(alert, runbook_url) for alert in ALERTS]),
    ]


def _group(name: str, rules: Sequence[Any]) -> dict[str, Any]:
    return {"name": name, "interval": EVALUATION_INTERVAL, "rules": list(rules)}


def _alert(alert: Alert, runbook_url: str) -> dict[str, Any]:
    return {
        "alert": alert.name,
        "expr": alert.expression,
        "for": f"{alert.for_seconds}s",
        "labels": {"severity": alert.severity},
        "annotations": {
            "summary": alert.summary,
            "description": alert.meaning,
            "runbook_url": f"{runbook_url}#{alert.anchor}",
        },
    }
