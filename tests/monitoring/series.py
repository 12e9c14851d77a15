"""Series of a stack with one model server, as kube-state-metrics, vLLM and neuron-monitor would give them."""

from neuron.instances import CHIP_RESOURCE
from tests.monitoring.promtool import Series, for_ever

POD = 'namespace="vllm", pod="tinyllama-1"'
NEW_POD = 'namespace="vllm", pod="tinyllama-2"'
SERVER = 'namespace="vllm", model_server="tinyllama"'
DEPLOYMENT = 'namespace="vllm", deployment="tinyllama-0a1b"'
SCALER = 'namespace="vllm", horizontalpodautoscaler="tinyllama"'
_LABELS = 'label_app_kubernetes_io_name="vllm", label_app_kubernetes_io_instance="tinyllama"'
_CHIPS = f'resource="{CHIP_RESOURCE.replace(".", "_").replace("/", "_")}"'
WAITING = f'vllm:num_requests_waiting{{{SERVER}, pod="tinyllama-1"}}'
READY = f"kube_deployment_status_replicas_ready{{{DEPLOYMENT}}}"
PROGRESSING_FALSE = f'kube_deployment_status_condition{{{DEPLOYMENT}, condition="Progressing", status="false"}}'
_SCALING_ACTIVE = f'{SCALER}, condition="ScalingActive"'
SCALER_INACTIVE = f'kube_horizontalpodautoscaler_status_condition{{{_SCALING_ACTIVE}, status="false"}}'
DESIRED = f"kube_horizontalpodautoscaler_status_desired_replicas{{{SCALER}}}"
NODE_CHIPS = f'kube_node_status_allocatable{{node="a", {_CHIPS}}}'
_BOUNDS = ("0.25", "0.5", "0.75", "1.0", "2.5", "5.0", "+Inf")


def pod(name: str, phase: str) -> dict[str, str]:
    """A pod of the server that asks for a chip."""
    return {
        f"kube_pod_labels{{{name}, {_LABELS}}}": for_ever(1),
        f'kube_pod_container_resource_requests{{{name}, container="server", {_CHIPS}}}': for_ever(1),
        f'kube_pod_status_phase{{{name}, phase="{phase}"}}': for_ever(1),
    }


def first_tokens(*parts: tuple[str, int, int]) -> dict[str, str]:
    """Buckets of the time to first token.

    Each part has the bound that its requests are within, how many come at each scrape, and for how many scrapes.
    """
    series = {}
    for index, bound in enumerate(_BOUNDS):
        value, values = 0, ["0"]
        for within, requests, scrapes in parts:
            growth = requests if index >= _BOUNDS.index(within) else 0
            values.append(f"{value + growth}+{growth}x{scrapes - 1}")
            value += growth * scrapes
        name = f'vllm:time_to_first_token_seconds_bucket{{{SERVER}, pod="tinyllama-1", le="{bound}"}}'
        series[name] = " ".join(values)
    every = series[f'vllm:time_to_first_token_seconds_bucket{{{SERVER}, pod="tinyllama-1", le="+Inf"}}']
    return {**series, f'vllm:time_to_first_token_seconds_count{{{SERVER}, pod="tinyllama-1"}}': every}


def healthy() -> Series:
    """One ready pod on one node, no queue, a scaler that works."""
    return {
        **pod(POD, "Running"),
        **first_tokens(("0.5", 15, 1000)),
        WAITING: for_ever(0),
        f"kube_deployment_labels{{{DEPLOYMENT}, {_LABELS}}}": for_ever(1),
        READY: for_ever(1),
        PROGRESSING_FALSE: for_ever(0),
        SCALER_INACTIVE: for_ever(0),
        DESIRED: for_ever(1),
        'kube_node_labels{node="a", label_node_kubernetes_io_instance_type="trn1.2xlarge"}': for_ever(1),
        'kube_node_labels{node="b", label_node_kubernetes_io_instance_type="m7i.large"}': for_ever(1),
        NODE_CHIPS: for_ever(1),
        'execution_errors_total{node="a", error_type="hardware"}': for_ever(3),
        'hardware_ecc_events_total{node="a", neuron_device_index="0", event_type="mem_ecc_corrected"}': "0+1x1000",
        'hardware_ecc_events_total{node="a", neuron_device_index="0", event_type="mem_ecc_uncorrected"}': for_ever(0),
    }
