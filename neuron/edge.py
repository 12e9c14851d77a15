"""What stands in front of servers: how many requests it lets in, and how long it waits for them."""

import math

from neuron.errors import ImpossibleInputError
from neuron.rollout import Drain

# As many requests wait as run: enough to keep every sequence of a batch busy, and a wait of about one request's time.
DEFAULT_QUEUE_FACTOR = 2.0
# (src) a full queue at this factor was served within 3.76 s (concurrency 32 against max_num_seqs 16, p99): whoever
# comes back after this time meets other requests than those that kept him out.
RETRY_AFTER_SECONDS = 5
# An idle limit that AWS gives a Network Load Balancer by itself, and the most that it takes.
LOAD_BALANCER_IDLE_SECONDS = 350
LOAD_BALANCER_IDLE_CEILING_SECONDS = 6000
# The longest deregistration delay of a target group.
DEREGISTRATION_CEILING_SECONDS = 3600


def concurrency_limit(replicas: int, max_num_seqs: int, queue_factor: float) -> int:
    """Requests in flight that servers may have at most, those that wait inside them included.

    Raises ImpossibleInputError for a factor below 1, which would leave a part of each batch empty.
    """
    if queue_factor < 1:
        raise ImpossibleInputError(f"found a queue factor of {queue_factor:g}; below 1 batches are never full")
    return math.floor(replicas * max_num_seqs * queue_factor)


def share(limit: int, proxies: int) -> int:
    """What each of `proxies` lets in, that counts for itself alone: together they never let in less than `limit`."""
    return math.ceil(limit / proxies)


def deregistration_seconds(drain: Drain) -> int:
    """How long a load balancer leaves open connections to a pod that stops: as long as that pod serves."""
    return min(drain.serving_seconds, DEREGISTRATION_CEILING_SECONDS)


def idle_seconds(longest_request_seconds: int) -> int:
    """How long a connection of a load balancer may carry nothing: a request without a stream is silent to its end."""
    return max(LOAD_BALANCER_IDLE_SECONDS, longest_request_seconds)
