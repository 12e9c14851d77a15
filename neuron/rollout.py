"""What a rollout does: strategy, probes, drain, deadlines, and the outage to expect.

All of it follows from a few inputs: pods, accelerator slots, start-up times, the longest request.
"""

import math
from dataclasses import dataclass

from neuron.errors import ImpossibleInputError
from neuron.images import ImageLine
from neuron.model import Model
from neuron.quantity import parse_count
from neuron.startup import EXIT_SECONDS, IMAGE_PULL_SECONDS, StartUp, start_up

# (src) compiling TinyLlama takes 214-229 s; a shorter budget kills a server that compiles because its cache missed.
STARTUP_BUDGET_MINIMUM_SECONDS = 240
# The budget is a limit, not a delay: half as long again costs nothing and absorbs a slow download.
STARTUP_BUDGET_FACTOR = 1.5
# Time for endpoint controllers, kube-proxy and load balancers to stop sending to a terminating pod.
ENDPOINT_PROPAGATION_SECONDS = 10
# Left between the end of the drain and SIGKILL.
KILL_MARGIN_SECONDS = 10
# API, scheduling and image garbage collection around a pod's own times.
DEADLINE_MARGIN_SECONDS = 60
DEFAULT_LONGEST_REQUEST_SECONDS = 30


@dataclass(frozen=True)
class RollingUpdate:
    """Pods above and below the wanted number while a Deployment rolls."""

    max_surge: int
    max_unavailable: int


@dataclass(frozen=True)
class Probe:
    """An HTTP probe; it gives up after `period_seconds` x `failure_threshold`."""

    path: str
    period_seconds: int
    failure_threshold: int
    timeout_seconds: int

    @property
    def budget_seconds(self) -> int:
        """Seconds of failing until kubelet acts."""
        return self.period_seconds * self.failure_threshold


# vLLM opens its port only when the model is loaded; /v1/models is right even where /health answers earlier.
READINESS = Probe("/v1/models", period_seconds=5, failure_threshold=3, timeout_seconds=2)
# A busy server is slow, not dead: a minute of silence, behind a startup probe, before a restart costs a whole load.
LIVENESS = Probe("/health", period_seconds=10, failure_threshold=6, timeout_seconds=5)


@dataclass(frozen=True)
class Drain:
    """How a pod stops: `pre_stop_seconds` of sleep, then SIGTERM, then SIGKILL at `grace_seconds` from the start.

    `shutdown_timeout_seconds` goes to the server where the image line can finish requests after SIGTERM; else it is
    None and the sleep covers the longest request.
    """

    pre_stop_seconds: int
    shutdown_timeout_seconds: int | None
    grace_seconds: int

    @property
    def serving_seconds(self) -> int:
        """Seconds from deletion until a longest request that was in flight is served."""
        return self.pre_stop_seconds + (self.shutdown_timeout_seconds or 0)

    @property
    def stop_seconds(self) -> int:
        """Seconds from deletion until the chip is free, when a longest request was in flight."""
        return self.serving_seconds + EXIT_SECONDS


@dataclass(frozen=True)
class OneMoreNode:
    """What one more node of a pool would take; `free_vcpus` of the account's quota, None where that is not known."""

    instance: str
    vcpus: int
    free_vcpus: int | None = None

    def __str__(self) -> str:
        """As in `one more inf2.xlarge needs 4 of 0 free vCPUs`, or that it would avoid the outage."""
        if self.free_vcpus is None:
            return f"one more {self.instance} would avoid this"
        need = f"one more {self.instance} needs {self.vcpus} of {self.free_vcpus} free vCPUs"
        return need if self.vcpus > self.free_vcpus else f"{need} and would avoid this"


@dataclass(frozen=True)
class Situation:
    """Everything that a rollout depends on. `slots` is how many serving pods the pool holds at its largest.

    `replicas` are the most that there may be. `fewest_replicas` is how few an autoscaler leaves, None without one.
    `chips` is what one pod takes, `one_more` what a spare would cost.
    """

    replicas: int
    slots: int
    start: StartUp
    longest_request_seconds: int
    line: ImageLine
    fewest_replicas: int | None = None
    chips: int = 1
    one_more: OneMoreNode | None = None

    @property
    def serving_replicas(self) -> int:
        """Replicas that serve at least, when nothing is replaced."""
        return self.replicas if self.fewest_replicas is None else self.fewest_replicas


@dataclass(frozen=True)
class Rollout:
    """The derived settings of one Deployment and the forecast of its next rollout."""

    update: RollingUpdate
    startup: Probe
    readiness: Probe
    liveness: Probe
    drain: Drain
    progress_deadline_seconds: int
    await_timeout_seconds: int
    outage_seconds: float
    reason: str

    @property
    def forecast(self) -> str:
        """One line for the preview: what the next rollout will do, and why."""
        strategy = f"surge {self.update.max_surge}, unavailable {self.update.max_unavailable}"
        outage = f"about {self.outage_seconds:.0f} s without a ready endpoint" if self.outage_seconds else "no outage"
        return f"next rollout: {strategy}, {outage} ({self.reason})"


def derive_rollout(situation: Situation) -> Rollout:
    """Derive a rollout; ImpossibleInputError if there are no replicas or they do not fit the pool."""
    if situation.replicas < 1:
        raise ImpossibleInputError(f"found {situation.replicas} replicas; at least 1 is needed to serve")
    spare = situation.slots - situation.replicas
    if spare < 0:
        raise ImpossibleInputError(f"found {situation.replicas} replicas for {situation.slots} accelerator slots")
    update = RollingUpdate(max_surge=1, max_unavailable=0) if spare else RollingUpdate(max_surge=0, max_unavailable=1)
    drain = derive_drain(situation.line, situation.longest_request_seconds)
    startup = startup_probe(situation.start)
    pod_seconds = drain.grace_seconds + IMAGE_PULL_SECONDS + situation.start.prepare_seconds + startup.budget_seconds
    return Rollout(
        update=update,
        startup=startup,
        readiness=READINESS,
        liveness=LIVENESS,
        drain=drain,
        progress_deadline_seconds=pod_seconds + DEADLINE_MARGIN_SECONDS,
        await_timeout_seconds=pod_seconds * situation.replicas + DEADLINE_MARGIN_SECONDS,
        outage_seconds=_outage_seconds(situation, spare, drain, startup),
        reason=_reason(situation, spare),
    )


def startup_probe(start: StartUp) -> Probe:
    """The startup probe: every 5 s, for as long as a cold start of the server may take when its cache misses."""
    needed = max(STARTUP_BUDGET_MINIMUM_SECONDS, start.total_seconds * STARTUP_BUDGET_FACTOR)
    return Probe("/v1/models", period_seconds=5, failure_threshold=math.ceil(needed / 5), timeout_seconds=2)


def publish_timeout_seconds(model: Model, retries: int) -> int:
    """How long to wait for a publish Job: an image pull, and a generous cold start for each try."""
    one_try = math.ceil(start_up(model, cached=False).total_seconds * STARTUP_BUDGET_FACTOR)
    return IMAGE_PULL_SECONDS + one_try * (retries + 1) + DEADLINE_MARGIN_SECONDS


def derive_drain(line: ImageLine, longest_request_seconds: int) -> Drain:
    """The drain: requests in flight finish inside the server where the line can, else during the preStop sleep."""
    in_server = line.shutdown_timeout_flag is not None
    pre_stop = ENDPOINT_PROPAGATION_SECONDS + (0 if in_server else longest_request_seconds)
    return Drain(
        pre_stop_seconds=pre_stop,
        shutdown_timeout_seconds=longest_request_seconds if in_server else None,
        grace_seconds=pre_stop + longest_request_seconds + KILL_MARGIN_SECONDS,
    )


Count = int | float | str


def resolve_rolling_update(max_surge: Count, max_unavailable: Count, replicas: int) -> RollingUpdate:
    """Resolve counts or percentages as the Deployment controller does: surge up, unavailable down, never both 0.

    Raises ImpossibleInputError for values that the API server refuses.
    """
    surge = parse_count(max_surge, replicas, round_up=True)
    unavailable = parse_count(max_unavailable, replicas, round_up=False)
    return RollingUpdate(surge, unavailable if surge or unavailable else 1)


def _outage_seconds(situation: Situation, spare: int, drain: Drain, startup: Probe) -> float:
    """Seconds without a ready endpoint: only a single pod that must go before the next can start leaves any.

    The old pod leaves the endpoints at once; a probe finds the new one ready half a period late on average.
    """
    if spare or situation.serving_replicas > 1:
        return 0
    return drain.stop_seconds + situation.start.total_seconds + startup.period_seconds / 2


def _reason(situation: Situation, spare: int) -> str:
    scaled = "" if situation.fewest_replicas is None else "at the most "
    used = f"{scaled}{situation.replicas * situation.chips} of {situation.slots * situation.chips} chips in use"
    if spare:
        return f"{used}: a new pod starts before an old one stops"
    serving = situation.serving_replicas
    if serving > 1:
        return f"{used}: one pod at a time is replaced, {serving - 1} of {serving} keep serving"
    released = f"{used}: the old pod must release {'its chip' if situation.chips == 1 else 'them'}"
    one_more = f"; {situation.one_more}" if situation.one_more else ""
    return f"{released} before the new one starts{one_more}"
