"""kwok stages: what the simulated kubelets do with nodes and pods, and when.

A pod that asks for Neuron chips is a simulated server. It gets its timeline as annotations as soon as it has a node,
and its end when it is deleted, so that a test can read when the server could really answer:

    preparing-at   the init containers start
    started-at     the containers start
    serving-at     the server answers
    ready-at       the pod is Ready: with probes when they have seen the server, without probes as soon as it starts
    gone-at        the last process has ended and the chips are free (only of a deleted pod)

Other pods, and those of Jobs, run, complete and go at once. Times are divided by the time factor; those that the
controllers of Kubernetes count (progressDeadlineSeconds, minReadySeconds, ...) are not.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from neuron.instances import CHIP_RESOURCE, CORE_RESOURCE
from neuron.startup import EXIT_SECONDS, SCHEDULING_SECONDS, StartUp
from tools.control_plane.nodes import Object

ANNOTATION_PREFIX = "simulation.neuron-serving"
PREPARING_AT = f"{ANNOTATION_PREFIX}/preparing-at"
STARTED_AT = f"{ANNOTATION_PREFIX}/started-at"
SERVING_AT = f"{ANNOTATION_PREFIX}/serving-at"
READY_AT = f"{ANNOTATION_PREFIX}/ready-at"
GONE_AT = f"{ANNOTATION_PREFIX}/gone-at"

_TEMPLATES = Path(__file__).parent / "templates"
_DEFINITIONS = ("moments.tmpl", "statuses.tmpl")


@dataclass(frozen=True)
class Simulation:
    """How long a server takes to start, and how many times faster than reality its time runs."""

    start_up: StartUp
    time_factor: float

    def milliseconds(self, seconds: float) -> float:
        """Milliseconds on the clock that stand for `seconds` of the simulated server."""
        return seconds * 1000 / self.time_factor


def timeline(pod: Object) -> dict[str, datetime]:
    """The moments that a simulated server's annotations name, by annotation; empty before it has a node."""
    annotations = pod["metadata"].get("annotations") or {}
    return {key: datetime.fromisoformat(at) for key, at in annotations.items() if key.startswith(ANNOTATION_PREFIX)}


def render_stages(simulation: Simulation) -> list[Object]:
    """All stages of nodes and pods. At most one of them matches an object at a time: kwok draws lots otherwise."""
    values = _template_values(simulation)
    return [
        _stage("node-ready", [_NOT_READY], values, patch="status", kind="Node"),
        _stage("pod-run", [_NO_SERVER, _KEPT, _PENDING], values, patch="status"),
        _stage("pod-complete", [_NO_SERVER, _KEPT, _RUNNING, _OF_A_JOB], values, patch="status"),
        _stage("pod-delete", [_NO_SERVER, _DELETED], values, delete=True),
        _stage("server-schedule", [_SERVER, _KEPT, _absent(_at(READY_AT))], values, patch="metadata"),
        _stage("server-prepare", [_SERVER, _KEPT, _PENDING, _UNPREPARED], values, patch="status", at=PREPARING_AT),
        _stage("server-start", [_SERVER, _KEPT, _PENDING, _PREPARED], values, patch="status", at=STARTED_AT),
        _stage("server-ready", [_SERVER, _KEPT, _RUNNING, _NOT_READY], values, patch="status", at=READY_AT),
        _stage("server-terminate", [_SERVER, _DELETED, _absent(_at(GONE_AT))], values, patch="metadata"),
        _stage("server-gone", [_SERVER, _DELETED, _present(_at(GONE_AT))], values, delete=True, at=GONE_AT),
    ]


def _template_values(simulation: Simulation) -> dict[str, str | float]:
    """The variables of the templates; durations are milliseconds on the clock."""
    return {
        "second": simulation.milliseconds(1),
        "scheduling": simulation.milliseconds(SCHEDULING_SECONDS),
        "prepare": simulation.milliseconds(simulation.start_up.prepare_seconds),
        "server": simulation.milliseconds(simulation.start_up.server_seconds),
        "exit": simulation.milliseconds(EXIT_SECONDS),
        "preparingAt": PREPARING_AT,
        "startedAt": STARTED_AT,
        "servingAt": SERVING_AT,
        "readyAt": READY_AT,
        "goneAt": GONE_AT,
    }


def _stage(
    name: str,
    conditions: list[Object],
    values: Mapping[str, str | float],
    *,
    patch: str | None = None,
    delete: bool = False,
    at: str | None = None,
    kind: str = "Pod",
) -> Object:
    """A stage for objects that meet all `conditions`, played at the moment of the annotation `at`, by default at once.

    It patches the `status` or the `metadata`, never both: other stages would match the state between two patches.
    """
    step: Object = {"delete": True} if delete else {"patch": _patch(name, patch or "status", values)}
    spec: Object = {
        "resourceRef": {"apiGroup": "v1", "kind": kind},
        "selector": {"matchExpressions": [{"jq": condition} for condition in conditions]},
        "steps": [step],
    }
    if at is not None:
        spec["delay"] = {"durationFrom": {"jq": {"expression": _at(at)}}}
    return {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Stage", "metadata": {"name": name}, "spec": spec}


def _patch(name: str, root: str, values: Mapping[str, str | float]) -> Object:
    files = (*_DEFINITIONS, f"{name}.tmpl")
    variables = "".join(f"{{{{ ${key} := {_literal(value)} }}}}\n" for key, value in values.items())
    template = variables + "".join((_TEMPLATES / file).read_text(encoding="utf-8") for file in files)
    return {"root": root, "template": template} | ({"subresource": "status"} if root == "status" else {})


def _literal(value: str | float) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(float(value))


def _at(annotation: str) -> str:
    return f'.metadata.annotations["{annotation}"]'


def _present(query: str) -> Object:
    return {"key": query, "operator": "Exists"}


def _absent(query: str) -> Object:
    return {"key": query, "operator": "DoesNotExist"}


def _phase(phase: str) -> Object:
    return {"key": ".status.phase", "operator": "In", "values": [phase]}


_JOB = '.metadata.ownerReferences[]? | select(.kind == "Job") | .name'
# The API server copies the limits of extended resources into the requests.
_CHIPS = f'select([{_JOB}] == []) | .spec.containers[].resources.requests | .["{CHIP_RESOURCE}"], .["{CORE_RESOURCE}"]'
_SERVER, _NO_SERVER = _present(_CHIPS), _absent(_CHIPS)
_KEPT, _DELETED = _absent(".metadata.deletionTimestamp"), _present(".metadata.deletionTimestamp")
_OF_A_JOB = _present(_JOB)
_PENDING, _RUNNING = _phase("Pending"), _phase("Running")
_NOT_READY = {
    "key": '.status.conditions[]? | select(.type == "Ready") | .status',
    "operator": "NotIn",
    "values": ["True"],
}
# A server with init containers is unprepared until they have a status; one without has no preparing-at.
_UNPREPARED = _present(f"select(.status.initContainerStatuses == null) | {_at(PREPARING_AT)}")
_PREPARED = _present(
    f"select({_at(PREPARING_AT)} == null or .status.initContainerStatuses != null) | {_at(STARTED_AT)}"
)
