"""What Prometheus scrapes: the model servers and the exporter of the chips, as PodMonitors."""

from collections.abc import Sequence
from typing import Any

from components.monitoring.observed import ObservedServer, namespaces
from neuron.metrics import SCRAPE_INTERVAL_SECONDS, SERVER_LABEL

NEURON_MONITOR = "neuron-monitor"
# Chips change with load, not with single requests; nothing scales on them.
CHIP_SCRAPE_INTERVAL_SECONDS = 15


def server_monitor_spec(servers: Sequence[ObservedServer]) -> dict[str, Any]:
    """All pods of model servers, whether ready or not: a pod that does not answer is `up` 0, not absent.

    The pod's instance label becomes the label by which every query names a server.
    """
    instance = "__meta_kubernetes_pod_label_app_kubernetes_io_instance"
    return {
        "namespaceSelector": {"matchNames": namespaces(servers)},
        "selector": {"matchLabels": {"app.kubernetes.io/name": "vllm", "app.kubernetes.io/part-of": "neuron-serving"}},
        "podMetricsEndpoints": [
            {
                "port": "http",
                "path": "/metrics",
                "interval": f"{SCRAPE_INTERVAL_SECONDS}s",
                "scrapeTimeout": f"{SCRAPE_INTERVAL_SECONDS}s",
                "relabelings": [_copied(instance, SERVER_LABEL), _node()],
            }
        ],
    }


def chip_monitor_spec(namespace: str) -> dict[str, Any]:
    """The pods of neuron-monitor, each of which speaks for its node."""
    return {
        "namespaceSelector": {"matchNames": [namespace]},
        "selector": {"matchLabels": {"app.kubernetes.io/name": NEURON_MONITOR}},
        "podMetricsEndpoints": [
            {"port": "metrics", "interval": f"{CHIP_SCRAPE_INTERVAL_SECONDS}s", "relabelings": [_node()]}
        ],
    }


def _node() -> dict[str, Any]:
    return _copied("__meta_kubernetes_pod_node_name", "node")


def _copied(source: str, target: str) -> dict[str, Any]:
    return {"sourceLabels": [source], "targetLabel": target}
