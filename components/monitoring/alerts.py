"""The alerts, as one table: what is asked, how long it must hold, the measurement behind that, and what to do first.

docs/alerts.md is written from this table (`python -m tools.alert_docs`). "(src)" is docs/measurements.md.
"""

from dataclasses import dataclass
from typing import Literal

from components.monitoring import expressions
from neuron.rollout import STARTUP_BUDGET_FACTOR
from neuron.startup import COLD, IMAGE_PULL_SECONDS, WARM

Severity = Literal["critical", "warning"]


@dataclass(frozen=True)
class Alert:
    """One alert. `summary` and `meaning` may use labels in Go's template language, as in {{ $labels.pod }}.

    `for_seconds` is how long the expression must hold; `evidence` says why this threshold and this time.
    """

    name: str
    severity: Severity
    for_seconds: int
    expression: str
    summary: str
    meaning: str
    evidence: str
    first_steps: tuple[str, ...]

    @property
    def anchor(self) -> str:
        """The alert's heading in docs/alerts.md, as part of an address."""
        return self.name.lower()


def _burn_evidence(burn: float, time: str) -> str:
    share = expressions.slow_share_limit(burn)
    return f"The objective allows 5 %. {burn:g} times that, {share:.0%} slow requests, over {time} and still now."


ALERTS = (
    Alert(
        name="VLLMQueueBacklog",
        severity="warning",
        for_seconds=60,
        expression=expressions.QUEUE_BACKLOG,
        summary="{{ $value }} requests wait at each replica of {{ $labels.model_server }}",
        meaning="Requests arrive faster than the replicas answer. None fails: users wait.",
        evidence=(
            "(src) At 1600 requests without one failure the queue alone told: p95 rose to 6 s. The scaler's "
            "target is 2, and it acts within 25 s; a minute is what a scaler that works does not need."
        ),
        first_steps=(
            "See whether the scaler acts: `kubectl get hpa,scaledobject -n NAMESPACE`, and its maximum.",
            "Are new pods Pending? Then NeuronPodPending names the reason.",
            "No scaler, or at its maximum: raise maxNumSeqs up to the objective, or nodes and quota.",
        ),
    ),
    Alert(
        name="VLLMHighTTFT",
        severity="warning",
        for_seconds=120,
        expression=expressions.HIGH_FIRST_TOKEN,
        summary="one request in twenty of {{ $labels.model_server }} waits {{ $value }} s or longer for a token",
        meaning="The objective for the first token (firstTokenSloSeconds) is missed now.",
        evidence=(
            "(src) A server with a free slot answers after 0.25 to 0.37 s, a prefill takes 0.05 s: past a "
            "second it is the queue."
        ),
        first_steps=(
            "Look at the queue first: VLLMQueueBacklog.",
            "No queue: long prompts, or a broken chip (the Neuron dashboard).",
        ),
    ),
    Alert(
        name="VLLMPodPending",
        severity="warning",
        for_seconds=120,
        expression=expressions.POD_PENDING,
        summary="{{ $value }} pods of {{ $labels.model_server }} are Pending, and none of them loads",
        meaning=(
            "A pod that should serve is not started. While its init container loads or compiles, this does not count."
        ),
        evidence=(
            "(src) With a free chip and the image on the node a pod is past Pending within 3 s; a stalled "
            "rollout shows here alone, as no request fails."
        ),
        first_steps=(
            "`kubectl describe pod -n NAMESPACE POD`: the last event says what is missing.",
            "`Insufficient aws.amazon.com/neuron`: more replicas, or a surge, than chips. Lower one or add a node.",
            "`didn't tolerate` or `node affinity`: no node of the type is there. See the node group, "
            "and the account's quota.",
        ),
    ),
    Alert(
        name="VLLMNoReadyPod",
        severity="critical",
        for_seconds=60,
        expression=expressions.NO_READY_POD,
        summary="{{ $labels.model_server }} has no ready pod",
        meaning="Every request fails.",
        evidence=(
            "(src) A rollout of a single replica without a spare chip leaves 65 s without a ready pod, and "
            "95 s without probes. The preview forecasts the outage of the next rollout: this alert during "
            "one says that it was not avoided."
        ),
        first_steps=(
            "A rollout? `kubectl rollout status`; the preview's forecast says how long it may take.",
            "`kubectl get pods`: CrashLoopBackOff of model-load is ModelCacheMiss, OOMKilled is "
            "ModelServerOutOfMemory.",
        ),
    ),
    Alert(
        name="VLLMRolloutStuck",
        severity="warning",
        for_seconds=0,
        expression=expressions.ROLLOUT_STUCK,
        summary="the rollout of {{ $labels.model_server }} has stopped",
        meaning=(
            "No new pod became ready within progressDeadlineSeconds; the old ones go on serving, so nothing "
            "else shows it."
        ),
        evidence=(
            "(src) With Kubernetes' default strategy on one chip a rollout never ends, with 0 % failed "
            "requests. The deadline is derived from drain, image pull and start-up (neuron.rollout), so no "
            "further time is waited for."
        ),
        first_steps=(
            "Pending: see VLLMPodPending. Not ready: `kubectl logs` of the new pod.",
            "`pulumi up` with the strategy derived again, or `kubectl rollout undo deployment -n NAMESPACE NAME`.",
        ),
    ),
    Alert(
        name="NeuronPodPending",
        severity="warning",
        for_seconds=int(IMAGE_PULL_SECONDS * STARTUP_BUDGET_FACTOR),
        expression=expressions.pending_reasons(),
        summary="{{ $labels.pod }}, which asks for Neuron chips, is Pending: {{ $labels.reason }}",
        meaning=(
            "Any pod that asks for chips and does not get on, with the reason: servers, publishing Jobs, and "
            "those of others."
        ),
        evidence=(
            "(src) The longest that is usual is the pull of the image: 168 s on a node's first pod "
            f"({IMAGE_PULL_SECONDS} s allowed), and half as long again."
        ),
        first_steps=(
            "Unschedulable: chips, taints or quota; `kubectl describe pod` has the scheduler's words.",
            "ImagePullBackOff: the tag, or the node's way to the registry.",
            "ContainerCreating: the volume; look at the s3-csi-node pod of the node.",
        ),
    ),
    Alert(
        name="VLLMScalerMetricAbsent",
        severity="critical",
        for_seconds=60,
        expression=expressions.METRIC_ABSENT,
        summary="no replica of {{ $labels.model_server }} tells its queue",
        meaning=(
            "The server exists and has ready pods, but the series that scaler and alerts go by is not there: "
            "they are blind."
        ),
        evidence=(
            "Twelve scrapes. A new image renamed metrics twice (vLLM 0.11: gpu_cache_usage_perc, "
            "time_per_output_token_seconds); Kubernetes takes an absent series for an empty queue unless the "
            "scaler is told otherwise."
        ),
        first_steps=(
            '`up{model_server="NAME"}` in Prometheus: 0 is the network (a NetworkPolicy?), nothing is the PodMonitor.',
            "1: `kubectl exec` into the pod and read /metrics; compare names with neuron/metrics.py.",
        ),
    ),
    Alert(
        name="VLLMScalerInactive",
        severity="critical",
        for_seconds=120,
        expression=expressions.SCALER_INACTIVE,
        summary="{{ $labels.horizontalpodautoscaler }} cannot compute a number of replicas",
        meaning="The autoscaler gets no metric, or an error for one. It keeps the replicas that there are.",
        evidence="The horizontal pod autoscaler asks every 15 s; eight failures are no hiccup.",
        first_steps=(
            "`kubectl describe hpa`: the condition ScalingActive has the error.",
            "KEDA: logs of keda-operator.",
        ),
    ),
    Alert(
        name="VLLMScalingReversals",
        severity="warning",
        for_seconds=0,
        expression=expressions.SCALING_REVERSALS,
        summary="{{ $labels.horizontalpodautoscaler }} scaled down {{ $value }} times within the hour, and up again",
        meaning="Replicas go and come back: each time a chip is paid for that loads a model instead of serving.",
        evidence=(
            f"(src) A start takes {WARM.total_seconds} s warm and {COLD.total_seconds} s cold. Scale-down "
            "waits for longer than a cold start, so a load that ends does not turn the scaler three times an "
            "hour; one that comes back at once does."
        ),
        first_steps=("Lengthen the scale-down window past the gap between bursts, or raise the minimum.",),
    ),
    Alert(
        name="ModelCacheMiss",
        severity="warning",
        for_seconds=120,
        expression=expressions.CACHE_MISS,
        summary="{{ $labels.pod }} does not find its model published",
        meaning=("A pod compiles for itself, or fails because it may not (onMiss), though a Job published the model."),
        evidence=(
            f"(src) A hit takes {WARM.prepare_seconds} s, a miss {COLD.prepare_seconds} s: two minutes lie "
            "between them, also for a checkpoint many times as large."
        ),
        first_steps=(
            "`kubectl logs -n NAMESPACE POD -c model-load`: it names the nearest publication and how that differs.",
            "`kubectl get jobs -n NAMESPACE`: did the publishing Job end?",
        ),
    ),
    Alert(
        name="ModelServerOutOfMemory",
        severity="critical",
        for_seconds=0,
        expression=expressions.OUT_OF_MEMORY,
        summary="{{ $labels.container }} of {{ $labels.pod }} was killed for memory and starts again",
        meaning="The load peak is larger than the container's limit: it will be killed again, after each load.",
        evidence=(
            "(src) A 12 GB checkpoint grew past 28 GiB while it was sharded, about three times its size, and "
            "ended with exit code 137. One is enough: nothing changes between two loads."
        ),
        first_steps=(
            "Is model.checkpointGb right? The limit is derived from it.",
            'A larger type, or a checkpoint that is sharded before: README, "Host memory".',
        ),
    ),
    Alert(
        name="NeuronExecutionErrors",
        severity="warning",
        for_seconds=0,
        expression=expressions.EXECUTION_ERRORS,
        summary="{{ $value }} {{ $labels.error_type }} execution errors on {{ $labels.node }}",
        meaning="The Neuron runtime reports that executions of the model failed.",
        evidence="None was seen in the measurements: the rate of a sound chip is 0.",
        first_steps=(
            "`hardware`: cordon the node and let the node recovery replace it.",
            "`numerical`: the model's data type; `model`, `runtime`: the image line and the driver (neuron/images.py).",
        ),
    ),
    Alert(
        name="NeuronUncorrectedMemoryErrors",
        severity="critical",
        for_seconds=0,
        expression=expressions.UNCORRECTED_MEMORY_ERRORS,
        summary="chip {{ $labels.neuron_device_index }} of {{ $labels.node }} has memory errors that it cannot correct",
        meaning="Answers of this chip cannot be trusted. Errors that the chip corrects are no alert.",
        evidence="One is enough: by AWS' troubleshooting guide of the Neuron runtime results may then be wrong.",
        first_steps=(
            "`kubectl cordon NODE`, delete the pod; the node recovery (accelerator.nodeProblemDetector: "
            "recover) does it by itself.",
        ),
    ),
    Alert(
        name="NeuronNodeWithoutChips",
        severity="warning",
        for_seconds=300,
        expression=expressions.NODE_WITHOUT_CHIPS,
        summary="{{ $labels.node }} offers no Neuron chip",
        meaning="The node is paid for, and no pod can use its chips: device plugin or driver do not work.",
        evidence=(
            "A device plugin advertises chips seconds after the node is ready (docs/adr/0013); five minutes "
            "cover its image."
        ),
        first_steps=(
            "`kubectl get pods -n kube-system -o wide | grep neuron-device-plugin`, and the logs of the "
            "one on the node.",
            "The AMI's driver against the image line: `aws ssm start-session`, then `modinfo neuron`.",
        ),
    ),
    Alert(
        name="VLLMFirstTokenBudgetFast",
        severity="critical",
        for_seconds=120,
        expression=expressions.FAST_BUDGET_BURN,
        summary="{{ $value | humanizePercentage }} of the requests of {{ $labels.model_server }} begin late",
        meaning="At this rate a month's share of slow requests (5 %) is used up in two days.",
        evidence=_burn_evidence(expressions.FAST_BURN, "an hour"),
        first_steps=("As VLLMHighTTFT. This one is worth waking somebody for.",),
    ),
    Alert(
        name="VLLMFirstTokenBudgetSlow",
        severity="warning",
        for_seconds=900,
        expression=expressions.SLOW_BUDGET_BURN,
        summary="{{ $value | humanizePercentage }} of the requests of {{ $labels.model_server }} began late for hours",
        meaning="At this rate a month's share of slow requests (5 %) is used up in five days.",
        evidence=_burn_evidence(expressions.SLOW_BURN, "six hours"),
        first_steps=("Capacity: more replicas at the hours where the serving dashboard shows a queue.",),
    ),
)
