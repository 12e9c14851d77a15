"""What is asked of Prometheus about model servers: queries that hold on every image line, and the labels they go by.

Alerts, dashboards and scalers share these, so that none of them is blind after an upgrade of the image. A query gives
one element for each model server; with `of_server` as its selector it gives the one that a scaler needs.
"""

from neuron.images import IMAGE_LINES

# Prometheus gives a pod's series its namespace; the PodMonitor adds the server's name, from the pod's instance label.
SERVER_LABEL = "model_server"
SERVER_LABELS = ("namespace", SERVER_LABEL)

WAITING = "vllm:num_requests_waiting"
RUNNING = "vllm:num_requests_running"
PREEMPTIONS = "vllm:num_preemptions_total"
GENERATED_TOKENS = "vllm:generation_tokens_total"
PROMPT_TOKENS = "vllm:prompt_tokens_total"
FINISHED_REQUESTS = "vllm:request_success_total"
TIME_TO_FIRST_TOKEN = "vllm:time_to_first_token_seconds"  # noqa: S105 - a metric
END_TO_END = "vllm:e2e_request_latency_seconds"

# The buckets that every line has: a share of requests is exact at these bounds, and estimated between them.
TIME_TO_FIRST_TOKEN_BOUNDS_SECONDS = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75),
    *(1.0, 2.5, 5.0, 7.5, 10.0),
)
# (src) the alert of the workshop; a server with a free slot answers after 0.25 to 0.37 s.
DEFAULT_FIRST_TOKEN_SLO_SECONDS = 1.0
# A scaler is to act within 25 s of a backlog (src), so the queue must not be older than a few.
SCRAPE_INTERVAL_SECONDS = 5
# Twelve scrapes: short enough to follow a burst, long enough to have requests in it.
DEFAULT_WINDOW = "1m"


def of_server(namespace: str, name: str) -> str:
    """The selector of one model server's series."""
    return f'namespace="{namespace}", {SERVER_LABEL}="{name}"'


def by_server(aggregation: str, vector: str, *further: str) -> str:
    """The vector aggregated for each model server, and for each value of `further` labels."""
    return f"{aggregation} by ({', '.join([*SERVER_LABELS, *further])}) ({vector})"


def queue_length(selector: str = "") -> str:
    """Requests that wait, over all replicas: the scaler's signal, to be divided by the replicas that there are.

    Nothing where no replica tells: a scaler must then hold, not see an empty queue.
    """
    return by_server("sum", f"{WAITING}{{{selector}}}")


def queue_per_replica(selector: str = "") -> str:
    """Requests that wait at a replica on average, over the replicas that serve."""
    return by_server("avg", by_server("sum", f"{WAITING}{{{selector}}}", "pod"))


def running(selector: str = "") -> str:
    """Requests that are being served, over all replicas; a replica takes up to max_num_seqs."""
    return by_server("sum", f"{RUNNING}{{{selector}}}")


def serving_replicas(selector: str = "") -> str:
    """Replicas that answer: vLLM opens its port when the model is loaded."""
    return by_server("count", by_server("sum", f"{RUNNING}{{{selector}}}", "pod"))


def per_second(counter: str, selector: str = "", window: str = DEFAULT_WINDOW) -> str:
    """Growth of a counter in a second, over all replicas."""
    return by_server("sum", f"rate({counter}{{{selector}}}[{window}])")


def time_to_first_token(quantile: float, selector: str = "", window: str = DEFAULT_WINDOW) -> str:
    """Seconds within which that share of requests has its first token; NaN where no request came."""
    return _quantile(quantile, (TIME_TO_FIRST_TOKEN,), selector, window)


def scaling_time_to_first_token(quantile: float, selector: str = "", window: str = DEFAULT_WINDOW) -> str:
    """The same for a scaler: 0 where servers are idle, nothing where none tells."""
    return f"({time_to_first_token(quantile, selector, window)} > 0) or 0 * {queue_length(selector)}"


def inter_token_latency(quantile: float, selector: str = "", window: str = DEFAULT_WINDOW) -> str:
    """Seconds between two tokens of an answer, under whichever name the image line has for it."""
    names = dict.fromkeys(line.metrics.per_token_seconds for line in reversed(list(IMAGE_LINES.values())))
    return _quantile(quantile, tuple(names), selector, window)


def end_to_end_latency(quantile: float, selector: str = "", window: str = DEFAULT_WINDOW) -> str:
    """Seconds from a request to the end of its answer; NaN where no request came."""
    return _quantile(quantile, (END_TO_END,), selector, window)


def _quantile(quantile: float, histograms: tuple[str, ...], selector: str, window: str) -> str:
    """A quantile of a histogram that has one of these names, the newest first: a server may export two of them."""
    rates = " or ".join(f"rate({name}_bucket{{{selector}}}[{window}])" for name in histograms)
    return f"histogram_quantile({quantile}, {by_server('sum', rates, 'le')})"
