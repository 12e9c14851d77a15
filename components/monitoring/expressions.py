"""What the alerts ask: one expression each, over vLLM's series, kube-state-metrics' and neuron-monitor's."""

from components.monitoring import records
from neuron.metrics import SERVER_LABELS, by_server, queue_length, queue_per_replica, time_to_first_token

# (src) the scaler acts at 2 waiting requests; more than that for a minute is what it does not get rid of.
QUEUE_PER_REPLICA = 2
FIRST_TOKEN_QUANTILE = 0.95
# Of the Google SRE workbook: budget of 30 days gone in 2 days (one hour's look) or in 5 days (six hours' look).
FAST_BURN, SLOW_BURN = 14.4, 6
# Each way, within an hour.
SCALING_TURNS = 3
# The init container that brings a published model to the pod (components/deployment.py).
LOAD_CONTAINER = "model-load"

_SERVER = f"on ({', '.join(SERVER_LABELS)})"
_POD = "on (namespace, pod)"
_PENDING = '(kube_pod_status_phase{phase="Pending"} == 1)'
_PREPARING = "(kube_pod_init_container_status_running == 1)"
_IN_SERVING_NAMESPACE = f"and on (namespace) {records.MAX_NUM_SEQS}"


def slow_share_limit(burn: float) -> float:
    """The share of slow requests that uses up the objective's budget so many times as fast as it may."""
    return burn * (1 - FIRST_TOKEN_QUANTILE)


def pending_reasons() -> str:
    """Pods that ask for chips and are Pending, each with the reason that Kubernetes gives."""
    unschedulable = 'label_replace(kube_pod_status_unschedulable == 1, "reason", "Unschedulable", "", "")'
    reasons = [
        f"max by (namespace, pod, reason) ({unschedulable})",
        _waiting_reason("kube_pod_init_container_status_waiting_reason"),
        _waiting_reason("kube_pod_container_status_waiting_reason"),
    ]
    return f"({' or '.join(reasons)}) and {_POD} {_PENDING} and {_POD} {records.CHIP_POD}"


def _waiting_reason(series: str) -> str:
    """Pods with the reason for which one of their containers waits; a main container waits for the init container."""
    return f'max by (namespace, pod, reason) ({series}{{reason!="PodInitializing"}} == 1)'


def _of_server(aggregation: str, vector: str, kind: str) -> str:
    """Series of kube-state-metrics about pods or deployments, aggregated for the model server that these belong to."""
    join = records.SERVER_POD if kind == "pod" else records.SERVER_DEPLOYMENT
    return by_server(aggregation, f"{vector} * on (namespace, {kind}) group_left (model_server) {join}")


def _burn(budgets: float, long: str, short: str) -> str:
    limit = f"{slow_share_limit(budgets):.4g}"
    return f"{records.slow_share(long)} > {limit} and {records.slow_share(short)} > {limit}"


def _killed(kind: str) -> str:
    """Containers that restarted within ten minutes after the kernel killed them for memory."""
    return (
        f"(increase(kube_pod_{kind}_status_restarts_total[10m]) > 0 and on (namespace, pod, container) "
        f'kube_pod_{kind}_status_last_terminated_reason{{reason="OOMKilled"}} == 1)'
    )


def _reversals() -> str:
    """Times that a scaler went down within an hour, where it went up as often."""
    desired = "kube_horizontalpodautoscaler_status_desired_replicas[1h]"
    downs, ups = f"resets({desired})", f"changes({desired}) - resets({desired})"
    return f"{downs} >= {SCALING_TURNS} and {ups} >= {SCALING_TURNS} {_IN_SERVING_NAMESPACE}"


def _cache_miss() -> str:
    """Pods of a published model that load for long, or failed to, and do not serve yet."""
    running = f'kube_pod_init_container_status_running{{container="{LOAD_CONTAINER}"}} == 1'
    failed = f'kube_pod_init_container_status_last_terminated_exitcode{{container="{LOAD_CONTAINER}"}} > 0'
    published = f"({records.SERVER_POD} and {_SERVER} {records.PUBLISHED})"
    return f"(({running}) or ({failed})) and {_POD} {_PENDING} and {_POD} {published}"


def _uncorrected() -> str:
    uncorrected = 'hardware_ecc_events_total{event_type=~".*_uncorrected"}'
    return f"sum by (node, neuron_device_index, event_type) (increase({uncorrected}[15m])) > 0"


_READY = _of_server("sum", "kube_deployment_status_replicas_ready", "deployment")
_STOPPED = 'kube_deployment_status_condition{condition="Progressing", status="false"}'
_INACTIVE = 'kube_horizontalpodautoscaler_status_condition{condition="ScalingActive", status="false"}'
_CHIPS_OFFERED = f'kube_node_status_allocatable{{resource="{records.CHIPS_IN_KUBE_STATE_METRICS}"}} > 0'

QUEUE_BACKLOG = f"{queue_per_replica()} > {QUEUE_PER_REPLICA}"
HIGH_FIRST_TOKEN = f"{time_to_first_token(FIRST_TOKEN_QUANTILE)} > {_SERVER} {records.FIRST_TOKEN_SLO}"
POD_PENDING = _of_server("sum", f"({_PENDING} unless {_POD} {_PREPARING})", "pod")
NO_READY_POD = f"{_READY} == 0"
ROLLOUT_STUCK = f"{_of_server('max', _STOPPED, 'deployment')} > 0"
METRIC_ABSENT = f"{records.MAX_NUM_SEQS} unless {_SERVER} {queue_length()} unless {_SERVER} ({NO_READY_POD})"
SCALER_INACTIVE = f"{_INACTIVE} == 1 {_IN_SERVING_NAMESPACE}"
SCALING_REVERSALS = _reversals()
CACHE_MISS = _cache_miss()
OUT_OF_MEMORY = f"({_killed('container')} or {_killed('init_container')}) and {_POD} {records.CHIP_POD}"
EXECUTION_ERRORS = "sum by (node, error_type) (increase(execution_errors_total[5m])) > 0"
UNCORRECTED_MEMORY_ERRORS = _uncorrected()
NODE_WITHOUT_CHIPS = f"{records.NEURON_NODE} unless on (node) ({_CHIPS_OFFERED})"
FAST_BUDGET_BURN = _burn(FAST_BURN, "1h", "5m")
SLOW_BUDGET_BURN = _burn(SLOW_BURN, "6h", "30m")
