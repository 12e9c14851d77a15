"""What the dashboards show, as a table: title, unit, and what is asked of Prometheus under which legend.

$namespace and $model_server are what the dashboard's user chose.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from components.monitoring import records
from components.monitoring.expressions import pending_reasons
from components.monitoring.observed import ObservedServer
from neuron import metrics
from neuron.metrics import SERVER_LABEL

CHOSEN = f'namespace=~"$namespace", {SERVER_LABEL}=~"$model_server"'
CHOSEN_NAMESPACE = 'namespace=~"$namespace"'

_SERVER = f"{{{{{SERVER_LABEL}}}}}"
_NODE = "{{node}}"
_CHIPS = f'resource="{records.CHIPS_IN_KUBE_STATE_METRICS}"'
_ON_SERVER = f"on ({', '.join(metrics.SERVER_LABELS)})"
_LONG_WINDOW = "5m"


@dataclass(frozen=True)
class Query:
    """What is asked, and the legend of its lines in Grafana's template language."""

    expression: str
    legend: str


@dataclass(frozen=True)
class Panel:
    """One panel. `unit` is Grafana's name of it; `note` says what to read from the panel."""

    title: str
    unit: str
    queries: tuple[Query, ...]
    note: str = ""


@dataclass(frozen=True)
class Board:
    """One dashboard; `by_server` says whether its user chooses namespace and server."""

    name: str
    title: str
    panels: tuple[Panel, ...]
    by_server: bool = True


def boards(servers: Sequence[ObservedServer]) -> tuple[Board, ...]:
    """The dashboards of a stack."""
    has_price = any(server.pod_usd_per_hour is not None for server in servers)
    serving = (*_SERVING, *((_COST,) if has_price else ()))
    return (
        Board("serving", "Model servers", serving),
        Board("neuron", "Neuron chips", _CHIPS_AT_WORK, by_server=False),
        Board("rollout", "Rollout and capacity", _ROLLOUT),
    )


def _quantiles(ask: str, *quantiles: float) -> tuple[Query, ...]:
    return tuple(
        Query(getattr(metrics, ask)(quantile, CHOSEN), f"{_SERVER} p{quantile * 100:.0f}") for quantile in quantiles
    )


def _replicas(series: str) -> str:
    return metrics.by_server(
        "sum",
        f"kube_deployment_{series} * on (namespace, deployment) group_left ({SERVER_LABEL}) "
        f"{records.SERVER_DEPLOYMENT}{{{CHOSEN}}}",
    )


_SERVING = (
    Panel(
        "Requests waiting, per replica",
        "short",
        (Query(metrics.queue_per_replica(CHOSEN), _SERVER),),
        "The scaler's signal. Above 2 for a minute is the alert VLLMQueueBacklog.",
    ),
    Panel(
        "Time to first token",
        "s",
        (
            *_quantiles("time_to_first_token", 0.5, 0.95, 0.99),
            Query(f"{records.FIRST_TOKEN_SLO}{{{CHOSEN}}}", f"{_SERVER} objective"),
        ),
    ),
    Panel(
        "Running requests against max_num_seqs",
        "short",
        (
            Query(metrics.running(CHOSEN), f"{_SERVER} running"),
            Query(
                f"{records.MAX_NUM_SEQS}{{{CHOSEN}}} * {_ON_SERVER} {metrics.serving_replicas(CHOSEN)}",
                f"{_SERVER} slots",
            ),
        ),
        "At the slots, further requests wait. Well below with a queue: prompts are the bottleneck.",
    ),
    Panel("Time between tokens", "s", _quantiles("inter_token_latency", 0.5, 0.95)),
    Panel(
        "Tokens per second",
        "short",
        (
            Query(metrics.per_second(metrics.GENERATED_TOKENS, CHOSEN), f"{_SERVER} generated"),
            Query(metrics.per_second(metrics.PROMPT_TOKENS, CHOSEN), f"{_SERVER} of prompts"),
        ),
    ),
    Panel("Time to the whole answer", "s", _quantiles("end_to_end_latency", 0.5, 0.95)),
    Panel(
        "Requests ended per second",
        "reqps",
        (
            Query(
                metrics.by_server(
                    "sum", f"rate({metrics.FINISHED_REQUESTS}{{{CHOSEN}}}[{_LONG_WINDOW}])", "finished_reason"
                ),
                f"{_SERVER} {{{{finished_reason}}}}",
            ),
        ),
    ),
    Panel(
        "Requests outside the objective",
        "percentunit",
        (Query(f"{records.slow_share('1h')}{{{CHOSEN}}}", f"{_SERVER} in the last hour"),),
        "5 % is what the objective allows.",
    ),
    Panel(
        "Preemptions per second",
        "short",
        (Query(metrics.per_second(metrics.PREEMPTIONS, CHOSEN, _LONG_WINDOW), _SERVER),),
        "A request lost its place in the cache to another. (src) The V0 engine's cache usage is always 0 on Neuron: "
        "this and the queue tell what it does not.",
    ),
)

_COST = Panel(
    "Cost of a million generated tokens",
    "currencyUSD",
    (
        Query(
            f"1e6 * {records.POD_PRICE}{{{CHOSEN}}} / 3600 * {_ON_SERVER} "
            f"{metrics.by_server('count', f'up{{{CHOSEN}}}')} / {_ON_SERVER} "
            f"({metrics.per_second(metrics.GENERATED_TOKENS, CHOSEN, _LONG_WINDOW)} > 0)",
            _SERVER,
        ),
    ),
    "On-demand price of the chips that the pods hold, ready or not, over what they generate now. (src) 4.39 at one "
    "request at a time, 1.50 at max_num_seqs 4 in full, 0.55 at 32.",
)

_CHIPS_AT_WORK = (
    Panel(
        "NeuronCore utilisation",
        "percentunit",
        (Query("avg by (node, neuroncore) (neuroncore_utilization_ratio)", f"{_NODE} core {{{{neuroncore}}}}"),),
        "(src) 81 to 83 % at any load: it tells an idle chip from a busy one, not a busy one from an overloaded one.",
    ),
    Panel(
        "Memory of the runtime",
        "bytes",
        (
            Query(
                "sum by (node, memory_location) (neuron_runtime_memory_used_bytes)", f"{_NODE} {{{{memory_location}}}}"
            ),
        ),
        "Fixed once a model is loaded.",
    ),
    Panel(
        "Execution latency",
        "s",
        (Query("avg by (node, percentile) (execution_latency_seconds)", f"{_NODE} {{{{percentile}}}}"),),
        "(src) A decode step takes 6.5 ms whatever the batch.",
    ),
    Panel(
        "Executions per second",
        "short",
        (
            Query(
                f"sum by (node, status_type) (rate(execution_status_total[{_LONG_WINDOW}]))",
                f"{_NODE} {{{{status_type}}}}",
            ),
        ),
    ),
    Panel(
        "Execution errors",
        "short",
        (Query("sum by (node, error_type) (increase(execution_errors_total[1h]))", f"{_NODE} {{{{error_type}}}}"),),
        "In an hour. Anything but 0 is the alert NeuronExecutionErrors.",
    ),
    Panel(
        "Memory errors",
        "short",
        (
            Query(
                "sum by (node, neuron_device_index, event_type) (increase(hardware_ecc_events_total[1h]))",
                f"{_NODE} chip {{{{neuron_device_index}}}} {{{{event_type}}}}",
            ),
        ),
        "In an hour. Uncorrected ones are the alert NeuronUncorrectedMemoryErrors.",
    ),
    Panel(
        "Host memory in use",
        "percentunit",
        (
            Query(
                "max by (node) (system_memory_used_bytes) / max by (node) (system_memory_total_bytes)",
                _NODE,
            ),
        ),
        "The limit of a model on Neuron: it peaks while one is loaded.",
    ),
    Panel(
        "Host CPU in use",
        "percentunit",
        (Query("sum by (node) (system_vcpu_usage_ratio)", _NODE),),
        "(src) 9 % of what a server asks for, while users wait: nothing to scale on.",
    ),
)

_ROLLOUT = (
    Panel(
        "Replicas",
        "short",
        (
            Query(_replicas("spec_replicas"), f"{_SERVER} wanted"),
            Query(_replicas("status_replicas_ready"), f"{_SERVER} ready"),
            Query(_replicas("status_replicas_updated"), f"{_SERVER} of the newest version"),
        ),
        "Wanted above ready for longer than a start, or the newest version below wanted: a rollout that is stuck.",
    ),
    Panel(
        "Autoscaler",
        "short",
        (
            Query(
                "max by (namespace, horizontalpodautoscaler) "
                f"(kube_horizontalpodautoscaler_status_desired_replicas{{{CHOSEN_NAMESPACE}}})",
                "{{horizontalpodautoscaler}} desired",
            ),
            Query(
                "max by (namespace, horizontalpodautoscaler) "
                f"(kube_horizontalpodautoscaler_spec_max_replicas{{{CHOSEN_NAMESPACE}}})",
                "{{horizontalpodautoscaler}} maximum",
            ),
        ),
        "Empty in a stack without an autoscaler.",
    ),
    Panel(
        "Chips",
        "short",
        (
            Query(f"sum(kube_node_status_allocatable{{{_CHIPS}}})", "offered by nodes"),
            Query(
                f"sum(kube_pod_container_resource_requests{{{_CHIPS}}} * on (namespace, pod) group_left () "
                '(kube_pod_status_phase{phase=~"Pending|Running"} == 1))',
                "asked for by pods",
            ),
        ),
        "Asked for above offered: pods are Pending until a node comes.",
    ),
    Panel(
        "Pods with chips that are Pending, by reason",
        "short",
        (Query(f"count by (namespace, reason) ({pending_reasons()})", "{{namespace}} {{reason}}"),),
    ),
    Panel(
        "Pods that load or compile",
        "short",
        (
            Query(
                "sum by (namespace, container) "
                f"(kube_pod_init_container_status_running{{{CHOSEN_NAMESPACE}}} * on (namespace, pod) group_left () "
                f"{records.CHIP_POD})",
                "{{namespace}} {{container}}",
            ),
        ),
        "(src) One second where the model is published, three and a half minutes where it is compiled.",
    ),
    Panel(
        "Restarts in the last hour",
        "short",
        (
            Query(
                "sum by (namespace, pod, container) "
                f"(increase(kube_pod_container_status_restarts_total{{{CHOSEN_NAMESPACE}}}[1h]) "
                f"* on (namespace, pod) group_left () {records.CHIP_POD})",
                "{{pod}} {{container}}",
            ),
        ),
    ),
)
