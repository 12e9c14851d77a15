"""What the server says at /metrics, by the names of its image line.

Sources: vLLM's metrics design page and its two loggers (V0 engine; V1), the names that differ from `neuron.images`.
Durations are those of the simulated server, whatever its time factor: thresholds and buckets keep their meaning.
"""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from neuron.images import V1_MINIMUM_VERSION, ImageLine, neuron_vllm_version, parse_reference
from stand_ins.vllm.sequence import Sequence

# vLLM's own edges, in seconds. Nothing between them can be told by a quantile.
_FIRST_TOKEN_EDGES = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
    *(20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
)
_TOKEN_EDGES = (
    0.01,
    0.025,
    0.05,
    0.075,
    0.1,
    0.15,
    0.2,
    0.3,
    0.4,
    0.5,
    0.75,
    1.0,
    2.5,
    5.0,
    7.5,
    10.0,
    20.0,
    40.0,
    80.0,
)
_REQUEST_EDGES = (
    *(0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0),
    *(120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0),
)

# Gauges that one engine alone has. (src) on Neuron, V0's cache usage stays 0.
_V0_ZERO_GAUGES = ("vllm:num_requests_swapped", "vllm:gpu_cache_usage_perc", "vllm:cpu_cache_usage_perc")


def is_v1(line: ImageLine) -> bool:
    """Whether the line's vLLM has the V1 engine."""
    version = neuron_vllm_version(parse_reference(line.image))
    return version is not None and version >= V1_MINIMUM_VERSION


class Metrics:
    """The metrics of one server, with the labels of its engine."""

    def __init__(self, line: ImageLine, model_name: str) -> None:
        self._registry = CollectorRegistry()
        self._labels = {"model_name": model_name} | ({"engine": "0"} if is_v1(line) else {})
        self._running = self._gauge("vllm:num_requests_running")
        self._waiting = self._gauge("vllm:num_requests_waiting")
        self._cache_usage = self._gauge(line.metrics.cache_usage) if line.metrics.cache_usage else None
        self._prompt_tokens = self._counter("vllm:prompt_tokens")
        self._generation_tokens = self._counter("vllm:generation_tokens")
        self._counter("vllm:num_preemptions")
        self._first_token = self._histogram("vllm:time_to_first_token_seconds", _FIRST_TOKEN_EDGES)
        self._per_token = self._histogram(line.metrics.per_token_seconds, _TOKEN_EDGES)
        self._queue = self._histogram("vllm:request_queue_time_seconds", _REQUEST_EDGES)
        self._prefill = self._histogram("vllm:request_prefill_time_seconds", _REQUEST_EDGES)
        self._decode = self._histogram("vllm:request_decode_time_seconds", _REQUEST_EDGES)
        self._inference = self._histogram("vllm:request_inference_time_seconds", _REQUEST_EDGES)
        self._end_to_end = self._histogram("vllm:e2e_request_latency_seconds", _REQUEST_EDGES)
        self._ended = Counter(
            "vllm:request_success", "vllm:request_success", (*self._labels, "finished_reason"), registry=self._registry
        )
        self._http = Counter("http_requests", "http_requests", ("handler", "method", "status"), registry=self._registry)
        for name in () if is_v1(line) else _V0_ZERO_GAUGES:
            self._gauge(name)

    def render(self) -> bytes:
        """The page at /metrics, in Prometheus' text format."""
        return generate_latest(self._registry)

    def set_load(self, running: int, waiting: int, slots: int) -> None:
        """The requests in slots and in the queue."""
        self._running.set(running)
        self._waiting.set(waiting)
        if self._cache_usage is not None:
            # The contiguous cache layout of NxDI reserves one block a slot.
            self._cache_usage.set(running / slots)

    def count_answer(self, handler: str, method: str, status: int) -> None:
        """One more HTTP answer; statuses count by their hundreds."""
        self._http.labels(handler, method, f"{status // 100}xx").inc()

    def count_token(self, sequence: Sequence, previous_token: float) -> None:
        """One more token of a request; `previous_token` is the time of the one before, 0 for the first."""
        self._generation_tokens.inc()
        if previous_token:
            self._per_token.observe(sequence.last_token - previous_token)
            return
        self._prompt_tokens.inc(sequence.prompt_tokens)
        self._queue.observe(sequence.admitted - sequence.arrived)
        self._prefill.observe(sequence.first_token - sequence.admitted)
        self._first_token.observe(sequence.first_token - sequence.arrived)

    def count_end(self, sequence: Sequence) -> None:
        """A request has all its tokens."""
        self._decode.observe(sequence.last_token - sequence.first_token)
        self._inference.observe(sequence.last_token - sequence.admitted)
        self._end_to_end.observe(sequence.last_token - sequence.arrived)
        self._ended.labels(*self._labels.values(), sequence.finish_reason).inc()

    def count_abort(self) -> None:
        """The client of an unfinished request is gone."""
        self._ended.labels(*self._labels.values(), "abort").inc()

    def _gauge(self, name: str) -> Gauge:
        return Gauge(name, name, tuple(self._labels), registry=self._registry).labels(**self._labels)

    def _counter(self, name: str) -> Counter:
        return Counter(name, name, tuple(self._labels), registry=self._registry).labels(**self._labels)

    def _histogram(self, name: str, edges: tuple[float, ...]) -> Histogram:
        metric = Histogram(name, name, tuple(self._labels), buckets=edges, registry=self._registry)
        return metric.labels(**self._labels)
