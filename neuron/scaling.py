"""How a model server scales: on which signals, how fast up, and how slowly down.

Nothing here looks at how busy a host or a chip is: (src) CPU showed 9 % while requests took 3 s.
"""

from collections.abc import Callable
from dataclasses import dataclass

from neuron import metrics
from neuron.errors import ImpossibleInputError
from neuron.model import Model
from neuron.rollout import Drain
from neuron.startup import IMAGE_PULL_SECONDS, start_up

TIME_TO_FIRST_TOKEN_QUANTILE = 0.95
# (src) a target of 2 waiting requests for 4 that are served: a new one waits half a request's time for its turn.
SERVED_PER_WAITING = 2
# The largest that the API server takes (HorizontalPodAutoscaler v2).
_MAXIMUM_WINDOW_SECONDS = 3600
_MAXIMUM_PERIOD_SECONDS = 1800


@dataclass(frozen=True)
class Signal:
    """What is watched. `query` takes a selector of series and gives a sum over the replicas; `metric` is its name.

    A sum over replicas, divided by a target for each, is how many replicas are needed: those that are still starting
    do not count twice, as they would in a ratio of averages.
    """

    name: str
    metric: str
    query: Callable[[str], str]


def _first_token_seconds(selector: str) -> str:
    first_token = metrics.scaling_time_to_first_token(TIME_TO_FIRST_TOKEN_QUANTILE, selector)
    return f"({first_token}) * {metrics.serving_replicas(selector)}"


# The queue asks for replicas; requests that are served keep those that there are, when nobody waits any more.
WAITING = Signal("waiting", "vllm_requests_waiting", metrics.queue_length)
RUNNING = Signal("running", "vllm_requests_running", metrics.running)
FIRST_TOKEN = Signal("first-token", "vllm_time_to_first_token_seconds_of_replicas", _first_token_seconds)
SIGNALS = (WAITING, RUNNING, FIRST_TOKEN)


@dataclass(frozen=True)
class Target:
    """How much of a signal one replica takes."""

    signal: Signal
    per_replica: float


@dataclass(frozen=True)
class Schedule:
    """At least `replicas` between two moments that cron expressions give in a time zone."""

    start: str
    end: str
    time_zone: str
    replicas: int


@dataclass(frozen=True)
class Scaling:
    """The derived scaling of one model server.

    It goes up at once. It goes down by one replica in `scale_down_period_seconds`, and only to the most that was
    needed within `scale_down_window_seconds`.
    """

    minimum: int
    maximum: int
    targets: tuple[Target, ...]
    schedule: tuple[Schedule, ...]
    scale_down_window_seconds: int
    scale_down_period_seconds: int

    @property
    def forecast(self) -> str:
        """One line for the preview."""
        targets = ", ".join(f"{one.per_replica:g} {one.signal.name}" for one in self.targets)
        return (
            f"scales between {self.minimum} and {self.maximum} replicas on {targets} for each: up at once, down by one "
            f"every {self.scale_down_period_seconds} s after {self.scale_down_window_seconds} s without need"
        )


def derive_scaling(
    minimum: int,
    maximum: int,
    model: Model,
    drain: Drain,
    first_token_target_seconds: float = metrics.DEFAULT_FIRST_TOKEN_SLO_SECONDS,
    schedule: tuple[Schedule, ...] = (),
) -> Scaling:
    """Derive it; ImpossibleInputError for bounds that are none."""
    if not 1 <= minimum <= maximum:
        raise ImpossibleInputError(f"found a scale from {minimum} to {maximum}; allowed: 1 or more, and not downwards")
    return Scaling(
        minimum=minimum,
        maximum=maximum,
        targets=(
            Target(WAITING, waiting_target(model.max_num_seqs)),
            Target(RUNNING, model.max_num_seqs),
            Target(FIRST_TOKEN, first_token_target_seconds),
        ),
        schedule=schedule,
        scale_down_window_seconds=_scale_down_window_seconds(model),
        # The next one goes when this one has drained.
        scale_down_period_seconds=min(drain.grace_seconds, _MAXIMUM_PERIOD_SECONDS),
    )


def waiting_target(max_num_seqs: int) -> int:
    """Requests that may wait at each replica before there are more replicas."""
    return max(max_num_seqs // SERVED_PER_WAITING, 1)


def _scale_down_window_seconds(model: Model) -> int:
    """As long as it may take to get a replica back: its node pulls the image, and it compiles where the cache misses.

    A lull that is shorter than that costs more when it is used than when it is sat out.
    """
    return min(IMAGE_PULL_SECONDS + start_up(model, cached=False).total_seconds, _MAXIMUM_WINDOW_SECONDS)
