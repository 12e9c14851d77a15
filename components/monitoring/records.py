"""Recording rules: what is known of a stack without asking it, and the joins that alerts and dashboards share."""

from collections.abc import Iterator, Sequence
from typing import TypedDict

from components.monitoring.observed import ObservedServer
from neuron.instances import CHIP_RESOURCE, INSTANCE_TYPE_LABEL
from neuron.metrics import SERVER_LABEL, TIME_TO_FIRST_TOKEN, by_server

MAX_NUM_SEQS = "neuron_serving:max_num_seqs"
FIRST_TOKEN_SLO = "neuron_serving:first_token_slo_seconds"  # noqa: S105 - a metric
# 1, with the bucket's bound as the label le: joined with buckets it picks those within the objective.
FIRST_TOKEN_SLO_BUCKET = "neuron_serving:first_token_slo_bucket"  # noqa: S105 - a metric
POD_PRICE = "neuron_serving:pod_usd_per_hour"
PUBLISHED = "neuron_serving:published"

SERVER_POD = "neuron_serving:pod"
SERVER_DEPLOYMENT = "neuron_serving:deployment"
CHIP_POD = "neuron_serving:chip_pod"
NEURON_NODE = "neuron_serving:neuron_node"

# The windows of the burn rates, long and short: a short one ends an alert soon after its cause is gone.
SLO_WINDOWS = ("5m", "30m", "1h", "6h")

# kube-state-metrics writes names of labels and resources so.
CHIPS_IN_KUBE_STATE_METRICS = CHIP_RESOURCE.replace(".", "_").replace("/", "_")
_INSTANCE_TYPE_LABEL = f"label_{INSTANCE_TYPE_LABEL.replace('.', '_').replace('/', '_').replace('-', '_')}"
_FAMILIES = "(inf2|trn[0-9]+[a-z]*)[.].+"


class Record(TypedDict):
    """A recording rule, as the custom resource has it."""

    record: str
    expr: str
    labels: dict[str, str]


def slow_share(window: str) -> str:
    """The name under which the share of requests is recorded whose first token came later than the objective."""
    return f"neuron_serving:slow_first_token:ratio_rate{window}"


def facts(servers: Sequence[ObservedServer]) -> list[Record]:
    """Constants of a stack as series: a series that should be there is missed against them."""
    return [record for server in servers for record in _facts_of(server)]


def _facts_of(server: ObservedServer) -> Iterator[Record]:
    labels = {"namespace": server.namespace, SERVER_LABEL: server.name}
    slo_seconds = float(server.first_token_slo_seconds)
    yield {"record": MAX_NUM_SEQS, "expr": f"vector({server.max_num_seqs})", "labels": labels}
    yield {"record": FIRST_TOKEN_SLO, "expr": f"vector({slo_seconds})", "labels": labels}
    yield {"record": FIRST_TOKEN_SLO_BUCKET, "expr": "vector(1)", "labels": {**labels, "le": str(slo_seconds)}}
    if server.pod_usd_per_hour is not None:
        yield {"record": POD_PRICE, "expr": f"vector({server.pod_usd_per_hour:g})", "labels": labels}
    if server.publishes:
        yield {"record": PUBLISHED, "expr": "vector(1)", "labels": labels}


def joins() -> list[Record]:
    """Which pods, deployments and nodes are meant, from what kube-state-metrics says of them."""
    named = {
        SERVER_POD: _by_instance_label("pod"),
        SERVER_DEPLOYMENT: _by_instance_label("deployment"),
        CHIP_POD: "max by (namespace, pod) "
        f'(kube_pod_container_resource_requests{{resource="{CHIPS_IN_KUBE_STATE_METRICS}"}} > 0)',
        NEURON_NODE: f'max by (node) (kube_node_labels{{{_INSTANCE_TYPE_LABEL}=~"{_FAMILIES}"}})',
    }
    return [{"record": name, "expr": expression, "labels": {}} for name, expression in named.items()]


def _by_instance_label(kind: str) -> str:
    """1 for each pod or deployment of a model server, with the server's name from the label that objects carry."""
    series = f'kube_{kind}_labels{{label_app_kubernetes_io_name="vllm"}}'
    named = f'label_replace({series}, "{SERVER_LABEL}", "$1", "label_app_kubernetes_io_instance", "(.+)")'
    return by_server("max", named, kind)


def slow_shares() -> list[Record]:
    """The share of requests outside the objective, over each window."""
    return [{"record": slow_share(window), "expr": _slow_share(window), "labels": {}} for window in SLO_WINDOWS]


def _slow_share(window: str) -> str:
    buckets = by_server("sum", f"rate({TIME_TO_FIRST_TOKEN}_bucket[{window}])", "le")
    within = by_server(
        "sum", f"{buckets} * on ({', '.join(['namespace', SERVER_LABEL, 'le'])}) {FIRST_TOKEN_SLO_BUCKET}"
    )
    every = by_server("sum", f"rate({TIME_TO_FIRST_TOKEN}_count[{window}])")
    return f"1 - {within} / ({every} > 0)"
