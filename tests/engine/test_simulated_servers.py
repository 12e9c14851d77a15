"""What the simulated nodes make of pods: start-up, readiness, termination, and the chips that they hold meanwhile."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from neuron.startup import COLD, EXIT_SECONDS, SCHEDULING_SECONDS, WARM
from tests.engine.conftest import Namespace, StartControlPlane, temporary_namespace, wait_until
from tools.control_plane.configure import is_ready
from tools.control_plane.nodes import Object
from tools.control_plane.stages import PREPARING_AT, READY_AT, SERVING_AT, STARTED_AT, timeline

TIME_FACTOR = 20
# How late kwok and the API server may be on a busy machine, in seconds on the clock.
TOLERANCE_SECONDS = 1.0
STARTUP_PROBE = {"httpGet": {"path": "/health", "port": 8080}, "periodSeconds": 4, "failureThreshold": 100}
READINESS_PROBE = {"httpGet": {"path": "/health", "port": 8080}, "periodSeconds": 5}


def pod_spec(**container: Any) -> Object:
    """A pod with one container that takes one chip."""
    server = {
        "name": "server",
        "image": "example.com/vllm:1",
        "resources": {"limits": {"aws.amazon.com/neuron": "1"}},
        "command": ["vllm", "serve"],
        **container,
    }
    return {"containers": [server]}


def prepared(spec: Object) -> Object:
    return {**spec, "initContainers": [{"name": "model-prep", "image": "example.com/prepare:1"}]}


def pod(name: str, spec: Object) -> Object:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def deployment(spec: Object, replicas: int, surge: int, unavailable: int) -> Object:
    labels = {"app": "server"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "server"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable},
            },
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def simulated(seconds: float) -> timedelta:
    return timedelta(seconds=seconds / TIME_FACTOR)


def until_ready(namespace: Namespace, name: str) -> Object:
    """The pod as it is when it has become ready."""
    wait_until(lambda: is_ready(namespace.get("pods", name)), seconds=30)
    return namespace.get("pods", name)


def ready_pods(namespace: Namespace) -> list[Object]:
    return [each for each in namespace.list("pods") if is_ready(each) and "deletionTimestamp" not in each["metadata"]]


def ready_endpoints(namespace: Namespace) -> int:
    slices = namespace.list("endpointslices")
    endpoints = [endpoint for each in slices for endpoint in each.get("endpoints") or []]
    return sum(bool(endpoint["conditions"]["ready"]) for endpoint in endpoints)


def is_rolled_out(namespace: Namespace) -> bool:
    """As `kubectl rollout status` sees it."""
    server = namespace.get("deployments", "server")
    replicas, status = server["spec"]["replicas"], server["status"]
    return status.get("observedGeneration") == server["metadata"]["generation"] and all(
        status.get(count, 0) == replicas for count in ("replicas", "updatedReplicas", "availableReplicas")
    )


def close_to(seconds: float) -> object:
    """Of moments in annotations, which have milliseconds."""
    return pytest.approx(simulated(seconds), abs=timedelta(milliseconds=2))


def test_a_server_with_probes_is_ready_when_its_startup_probe_has_seen_it(namespace: Namespace) -> None:
    created = datetime.now(UTC)
    namespace.apply(
        "pods", pod("server", prepared(pod_spec(startupProbe=STARTUP_PROBE, readinessProbe=READINESS_PROBE)))
    )
    server = until_ready(namespace, "server")
    observed = datetime.now(UTC)
    moments = timeline(server)
    assert moments[STARTED_AT] - moments[PREPARING_AT] == close_to(WARM.prepare_seconds)
    assert moments[SERVING_AT] - moments[STARTED_AT] == close_to(WARM.server_seconds)
    assert moments[READY_AT] - moments[SERVING_AT] == close_to(2)
    predicted = simulated(WARM.total_seconds + 2)
    assert predicted <= observed - created <= predicted + timedelta(seconds=TOLERANCE_SECONDS)
    assert server["status"]["containerStatuses"][0]["ready"] is True
    assert server["status"]["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 0


def test_a_server_without_probes_is_ready_before_it_can_serve(namespace: Namespace) -> None:
    namespace.apply("pods", pod("server", pod_spec()))
    moments = timeline(until_ready(namespace, "server"))
    assert datetime.now(UTC) < moments[SERVING_AT]
    assert moments[READY_AT] == moments[STARTED_AT]
    assert moments[SERVING_AT] - moments[STARTED_AT] == close_to(WARM.server_seconds)
    assert PREPARING_AT not in moments


def test_a_server_runs_unready_while_its_probe_fails(namespace: Namespace) -> None:
    namespace.apply("pods", pod("server", pod_spec(readinessProbe=READINESS_PROBE)))
    wait_until(lambda: namespace.get("pods", "server")["status"]["phase"] == "Running", seconds=5)
    server = namespace.get("pods", "server")
    assert not is_ready(server)
    [container] = server["status"]["containerStatuses"]
    assert (container["ready"], container["started"], container["restartCount"]) == (False, True, 0)
    assert until_ready(namespace, "server")["status"]["podIP"].startswith("198.18.")


def test_an_initial_delay_that_outlasts_the_start_decides(namespace: Namespace) -> None:
    probe = {**READINESS_PROBE, "initialDelaySeconds": WARM.server_seconds + 20}
    namespace.apply("pods", pod("server", pod_spec(readinessProbe=probe)))
    wait_until(lambda: timeline(namespace.get("pods", "server")), seconds=5)
    moments = timeline(namespace.get("pods", "server"))
    assert moments[READY_AT] - moments[SERVING_AT] == close_to(20 + 2.5)


def test_a_cold_start_takes_its_time(start_control_plane: StartControlPlane) -> None:
    plane = start_control_plane({"trn1.2xlarge": 1}, COLD, 100)
    with temporary_namespace(plane) as namespace:
        started = time.monotonic()
        namespace.apply("pods", pod("server", prepared(pod_spec(readinessProbe=READINESS_PROBE))))
        until_ready(namespace, "server")
        predicted = (COLD.total_seconds + 2.5) / 100
        assert predicted <= time.monotonic() - started <= predicted + TOLERANCE_SECONDS


def test_pods_without_chips_run_at_once_and_jobs_complete(namespace: Namespace) -> None:
    plain = {"containers": [{"name": "main", "image": "example.com/main:1", "readinessProbe": READINESS_PROBE}]}
    namespace.apply("pods", pod("plain", prepared(plain)))
    template = {"spec": {**pod_spec(), "restartPolicy": "Never"}}
    namespace.apply(
        "jobs",
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "publish"}, "spec": {"template": template}},
    )
    assert wait_until(lambda: is_ready(namespace.get("pods", "plain")), seconds=5) < TOLERANCE_SECONDS
    assert timeline(namespace.get("pods", "plain")) == {}
    wait_until(lambda: namespace.get("jobs", "publish")["status"].get("succeeded") == 1, seconds=5)


@pytest.mark.parametrize(
    ("container", "grace_seconds", "held_seconds"),
    [
        ({}, 30, EXIT_SECONDS),
        ({"lifecycle": {"preStop": {"sleep": {"seconds": 15}}}}, 60, 15 + EXIT_SECONDS),
        ({"lifecycle": {"preStop": {"exec": {"command": ["/bin/sh", "-c", "sleep 15"]}}}}, 60, 15 + EXIT_SECONDS),
        ({"lifecycle": {"preStop": {"exec": {"command": ["sleep", "50"]}}}}, 40, 40),
        ({"command": ["/bin/bash", "-c"], "args": ["set -e\nvllm serve model"]}, 30, 30),
        ({"command": ["/bin/bash", "-ec", "set -e; vllm serve model"]}, 30, 30),
        ({"command": ["sh", "-c", "exec vllm serve model"]}, 30, EXIT_SECONDS),
        ({"command": ["/bin/bash", "-c"], "args": ["prepare\nexec vllm serve model"]}, 30, EXIT_SECONDS),
    ],
    ids=[
        "a program that exits",
        "a preStop sleep",
        "a preStop command that sleeps",
        "a preStop sleep beyond the grace period",
        "a shell",
        "a shell with more options",
        "a shell that is replaced",
        "a shell that is replaced at its end",
    ],
)
def test_a_deleted_server_holds_its_chip_until_its_process_ends(
    namespace: Namespace, container: Object, grace_seconds: int, held_seconds: int
) -> None:
    namespace.apply("pods", pod("server", {**pod_spec(**container), "terminationGracePeriodSeconds": grace_seconds}))
    until_ready(namespace, "server")
    namespace.delete("pods", "server")
    held = wait_until(lambda: not namespace.has("pods", "server"), seconds=30)
    assert held_seconds / TIME_FACTOR - 0.1 <= held <= held_seconds / TIME_FACTOR + TOLERANCE_SECONDS / 2


def test_a_terminating_server_is_no_ready_endpoint_and_its_successor_waits_for_the_chip(
    namespace: Namespace, start_control_plane: StartControlPlane
) -> None:
    del namespace
    plane = start_control_plane({"inf2.xlarge": 1})
    with temporary_namespace(plane) as space:
        service = {"selector": {"app": "server"}, "ports": [{"port": 80, "targetPort": 8080}]}
        space.apply(
            "services", {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "server"}, "spec": service}
        )
        shell = pod_spec(command=["/bin/bash", "-c"], args=["set -e\nvllm serve"], readinessProbe=READINESS_PROBE)
        first, second = pod("first", shell), pod("second", shell)
        first["metadata"]["labels"] = second["metadata"]["labels"] = {"app": "server"}
        space.apply("pods", first)
        until_ready(space, "first")
        wait_until(lambda: ready_endpoints(space) == 1, seconds=5)
        space.apply("pods", second)
        wait_until(lambda: "Insufficient aws.amazon.com/neuron" in str(space.get("pods", "second")), seconds=5)
        space.delete("pods", "first")
        deleted = time.monotonic()
        wait_until(lambda: ready_endpoints(space) == 0, seconds=1)
        until_ready(space, "second")
        # The outage of the source: the whole grace period, and a start.
        predicted = (30 + SCHEDULING_SECONDS + WARM.server_seconds + 2.5) / TIME_FACTOR
        assert predicted - 0.2 <= time.monotonic() - deleted <= predicted + TOLERANCE_SECONDS


def test_an_update_without_surge_replaces_one_replica_after_the_other(namespace: Namespace) -> None:
    spec = pod_spec(startupProbe=STARTUP_PROBE, readinessProbe=READINESS_PROBE)
    namespace.apply("deployments", deployment(spec, replicas=2, surge=0, unavailable=1))
    wait_until(lambda: is_rolled_out(namespace), seconds=30)
    before = {each["metadata"]["uid"] for each in namespace.list("pods")}
    changed = pod_spec(startupProbe=STARTUP_PROBE, readinessProbe=READINESS_PROBE, image="example.com/vllm:2")
    namespace.apply("deployments", deployment(changed, replicas=2, surge=0, unavailable=1))
    fewest = _fewest_until(lambda: is_rolled_out(namespace), lambda: len(ready_pods(namespace)))
    assert fewest == 1
    assert not before & {each["metadata"]["uid"] for each in ready_pods(namespace)}


def test_a_surge_that_no_node_can_take_stalls_the_update(namespace: Namespace) -> None:
    namespace.apply("deployments", deployment(pod_spec(), replicas=2, surge=1, unavailable=0))
    wait_until(lambda: is_rolled_out(namespace), seconds=30)
    changed = pod_spec(image="example.com/vllm:2")
    namespace.apply("deployments", deployment(changed, replicas=2, surge=1, unavailable=0))
    wait_until(lambda: "Insufficient aws.amazon.com/neuron" in str(namespace.list("pods")), seconds=5)
    time.sleep(2 * WARM.total_seconds / TIME_FACTOR)
    assert not is_rolled_out(namespace)
    assert len(ready_pods(namespace)) == 2


def _fewest_until(done: Callable[[], bool], count: Callable[[], int]) -> int:
    counts: list[int] = []

    def counted_and_done() -> bool:
        counts.append(count())
        return done()

    wait_until(counted_and_done, seconds=60)
    return min(counts)
