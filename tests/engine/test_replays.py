"""Rollouts and what may happen in one, on the real controllers and scheduler: requests at 5 a second are counted.

The source's rollouts B and C with its own Deployment, then the Deployment that this program makes. They are applied by
the API: the engine adds nothing here (test_rollout.py has it). Simulated time runs ten times as fast.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from components.deployment import References, ServingPlan, deployment_spec, disruption_budget_spec, selector
from components.plans import serving_plans
from components.settings import Settings
from neuron.startup import WARM, StartUp
from tests.engine.conftest import Namespace, node_groups, temporary_namespace, wait_until
from tests.engine.traffic import REQUESTS_PER_SECOND, traffic
from tests.program.conftest import stack_values
from tools.control_plane import ControlPlane
from tools.control_plane.api import ApiError
from tools.control_plane.configure import configure_nodes
from tools.control_plane.nodes import Object

pytestmark = pytest.mark.long

TIME_FACTOR = 10.0
GROUPS = node_groups({"trn1.2xlarge": 1, "inf2.xlarge": 3})
# How much later than predicted a server may be ready on a busy machine, in simulated seconds.
TOLERANCE_SECONDS = 10


@dataclass(frozen=True)
class Measured:
    """One rollout of the source: how its servers started, and what share of the requests failed for how long."""

    probes: bool
    start_up: StartUp
    failed: float
    outage_seconds: float


# Both roll one pod on one trn1.2xlarge with surge 0, unavailable 1. A shell is process 1, so the old pod takes its
# whole grace period, 30 s; artifacts are cached (1 s in the init container); the server then takes the 29 s by which
# the source saw a pod without probes Ready too early. That alone gives C. In B the container started half a minute
# later, which the source does not explain: of 95 s in all it counts 49 s without an endpoint, 25 s with a deaf one.
SOURCE = {
    "B, without probes": Measured(False, StartUp(prepare_seconds=33, server_seconds=29), 0.438, 95.2),
    "C, with probes": Measured(True, StartUp(prepare_seconds=1, server_seconds=29), 0.232, 64.7),
}


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """The source's node and three inf2.xlarge; servers start warm."""
    made = ControlPlane(tmp_path_factory.mktemp("replays") / "control-plane", GROUPS, WARM, TIME_FACTOR)
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture
def space(plane: ControlPlane) -> Iterator[Namespace]:
    with temporary_namespace(plane) as made:
        yield made


@pytest.mark.parametrize("measured", SOURCE.values(), ids=SOURCE.keys())
def test_the_sources_rollouts_fail_for_as_long_and_as_many_requests_as_it_measured(
    plane: ControlPlane, measured: Measured
) -> None:
    slow = replace(plane, start_up=measured.start_up)
    slow.start()
    try:
        with temporary_namespace(plane) as space:
            deploy(space, workshop_deployment(measured.probes), {"app": "vllm"})
            with traffic(plane, space.name) as requests:
                wait_until(lambda: requests.served_last, seconds=30)
            with traffic(plane, space.name) as requests:
                restart(space, workshop_deployment(measured.probes))
                wait_until(lambda: requests.failed, seconds=5)
                wait_until(lambda: space.is_rolled_out("vllm") and requests.served_last, seconds=30)
    finally:
        plane.start()
    assert requests.outage_seconds == pytest.approx(measured.outage_seconds, rel=0.15)
    # The source went on until so many were sent; those after the rollout are served.
    sent = measured.outage_seconds * REQUESTS_PER_SECOND / measured.failed
    assert requests.failed / sent == pytest.approx(measured.failed, rel=0.15)


def test_with_one_node_more_no_request_fails(plane: ControlPlane, space: Namespace) -> None:
    plan = plan_of(replicas=1, nodes=2)
    manifest = rolled_out(space, plan)
    with traffic(plane, space.name) as requests:
        wait_until(lambda: requests.sent, seconds=5)
        restart(space, manifest)
        wait_until(lambda: space.is_rolled_out(plan.name), seconds=30)
    assert requests.failed == 0
    assert requests.sent > WARM.total_seconds * REQUESTS_PER_SECOND


def test_a_node_that_dies_under_the_new_pod_delays_the_rollout_and_costs_no_request(
    plane: ControlPlane, space: Namespace
) -> None:
    plan = plan_of(replicas=1, nodes=2)
    manifest = rolled_out(space, plan)
    old = pod_names(space)
    with traffic(plane, space.name) as requests, nodes_given_back(space):
        restart(space, manifest)
        (new,) = wait_for(lambda: scheduled_pods(space) - old)
        die(space, node_of(space, new))
        assert not space.is_rolled_out(plan.name)
        # Another node has a chip: the controllers start a third pod there.
        wait_until(lambda: space.is_rolled_out(plan.name), seconds=30)
    assert new not in pod_names(space)
    assert requests.failed == 0


def test_a_node_that_dies_under_the_old_pod_costs_what_is_left_of_the_new_pods_start(
    plane: ControlPlane, space: Namespace
) -> None:
    plan = plan_of(replicas=1, nodes=2)
    manifest = rolled_out(space, plan)
    (old,) = pod_names(space)
    with traffic(plane, space.name) as requests, nodes_given_back(space):
        restart(space, manifest)
        wait_for(lambda: scheduled_pods(space) - {old})
        die(space, node_of(space, old))
        wait_until(lambda: space.is_rolled_out(plan.name), seconds=30)
    assert 0 < requests.outage_seconds <= WARM.total_seconds + 2.5 + TOLERANCE_SECONDS


def test_a_drain_waits_until_the_evicted_server_is_replaced_and_costs_no_request(
    plane: ControlPlane, space: Namespace
) -> None:
    plan = plan_of(replicas=2, nodes=3)
    rolled_out(space, plan)
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": plan.name}}
    space.apply("poddisruptionbudgets", {**budget, "spec": as_manifest(disruption_budget_spec(plan))})
    wait_until(lambda: disruptions_allowed(space, plan.name) == 1, seconds=10)
    first, second = pod_names(space)
    with traffic(plane, space.name) as requests:
        space.evict(first)
        with pytest.raises(ApiError, match=r"429 Cannot evict pod as it would violate the pod's disruption budget"):
            space.evict(second)
        wait_until(lambda: disruptions_allowed(space, plan.name) == 1, seconds=30)
        space.evict(second)
        wait_until(lambda: not {first, second} & pod_names(space), seconds=30)
        wait_until(lambda: space.is_rolled_out(plan.name), seconds=30)
    assert requests.failed == 0


def test_a_pod_that_never_becomes_ready_ends_the_rollout_at_its_deadline_and_costs_no_request(
    plane: ControlPlane, space: Namespace
) -> None:
    plan = plan_of(replicas=1, nodes=2)
    manifest = rolled_out(space, plan)
    (old,) = pod_names(space)
    with traffic(plane, space.name) as requests:
        broken = derived_deployment(plan)
        broken["spec"]["template"]["spec"]["containers"][0]["startupProbe"]["initialDelaySeconds"] = 3600
        # The controller counts its deadline on the clock, not in simulated time.
        broken["spec"]["progressDeadlineSeconds"] = 5
        space.apply("deployments", broken)
        wait_until(lambda: "ProgressDeadlineExceeded" in repr(conditions(space, plan.name)), seconds=30)
        assert len(pod_names(space)) == 2
        # Back to what was: the broken pod goes, the old one was never touched.
        space.apply("deployments", manifest)
        wait_until(lambda: space.is_rolled_out(plan.name) and pod_names(space) == {old}, seconds=30)
    assert requests.failed == 0


def workshop_deployment(probes: bool) -> Object:
    """The source's Deployment, as far as the controllers and the kubelet read it."""
    health = {"httpGet": {"path": "/health", "port": 8080}, "periodSeconds": 5}
    server: Object = {
        "name": "vllm-server",
        "image": "example.com/vllm:0.9.1",
        "command": ["/bin/bash", "-c"],
        "args": ["python3 -m vllm.entrypoints.openai.api_server"],
        "resources": {"limits": {"aws.amazon.com/neuron": "1"}},
    }
    if probes:
        server |= {
            "startupProbe": {**health, "failureThreshold": 60},
            "readinessProbe": {**health, "failureThreshold": 3},
        }
    spec = {
        "nodeSelector": {"node.kubernetes.io/instance-type": "trn1.2xlarge"},
        "initContainers": [{"name": "model-prep", "image": "example.com/vllm:0.9.1"}],
        "containers": [server],
    }
    labels = {"app": "vllm"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "vllm"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def plan_of(replicas: int, nodes: int) -> ServingPlan:
    """The plan of the stack `local` with so many servers and nodes."""
    values = stack_values("local")
    values["nodeGroups"][0]["nodes"] = nodes
    values["serving"][0]["replicas"] = replicas
    (plan,) = serving_plans(Settings.model_validate(values))
    return plan


def derived_deployment(plan: ServingPlan) -> Object:
    """What the program registers; the pods refer to nothing that would have to exist."""
    references = References(service_account="default", publisher_account=None, programs="programs", cache_claim=None)
    manifest = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": plan.name}}
    return {**manifest, "spec": as_manifest(deployment_spec(plan, references))}


def rolled_out(space: Namespace, plan: ServingPlan) -> Object:
    """The Deployment of the plan, which serves."""
    manifest = derived_deployment(plan)
    deploy(space, manifest, selector(plan))
    wait_until(lambda: space.is_rolled_out(plan.name), seconds=30)
    return manifest


def as_manifest(value: Any) -> Any:
    """Arguments of Pulumi's Kubernetes SDK with the API's names: snake_case becomes camelCase."""
    if isinstance(value, dict):
        return {re.sub(r"_(\w)", lambda match: match[1].upper(), key): as_manifest(one) for key, one in value.items()}
    return [as_manifest(one) for one in value] if isinstance(value, list) else value


def deploy(space: Namespace, manifest: Object, selected: dict[str, str]) -> None:
    """A Deployment, and a Service for its pods."""
    service = {"selector": selected, "ports": [{"port": 8080}]}
    space.apply("services", {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "vllm"}, "spec": service})
    space.apply("deployments", manifest)


def restart(space: Namespace, manifest: Object) -> None:
    """As `kubectl rollout restart` does: an annotation of the pods changes."""
    template = manifest["spec"]["template"]
    metadata = {**template["metadata"], "annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}
    space.apply(
        "deployments", {**manifest, "spec": {**manifest["spec"], "template": {**template, "metadata": metadata}}}
    )


def die(space: Namespace, node: str) -> None:
    """A node's instance ends: the cloud's controller deletes the Node.

    Its pods are deleted here as the pod garbage collector does, who waits 40 s on the clock before.
    """
    pods = [pod["metadata"]["name"] for pod in space.list("pods") if pod["spec"].get("nodeName") == node]
    space.api.delete(f"/api/v1/nodes/{node}")
    for pod in pods:
        space.delete("pods", f"{pod}?gracePeriodSeconds=0")


@contextmanager
def nodes_given_back(space: Namespace) -> Iterator[None]:
    """Nodes that died are there again afterwards."""
    try:
        yield
    finally:
        configure_nodes(space.api, GROUPS)


def pod_names(space: Namespace) -> set[str]:
    return {pod["metadata"]["name"] for pod in space.list("pods")}


def scheduled_pods(space: Namespace) -> set[str]:
    return {pod["metadata"]["name"] for pod in space.list("pods") if "nodeName" in pod["spec"]}


def node_of(space: Namespace, pod: str) -> str:
    return str(space.get("pods", pod)["spec"]["nodeName"])


def wait_for(found: Callable[[], set[str]]) -> set[str]:
    """What `found` gives once it gives something."""
    wait_until(found, seconds=10)
    return found()


def disruptions_allowed(space: Namespace, budget: str) -> int:
    return int(space.get("poddisruptionbudgets", budget).get("status", {}).get("disruptionsAllowed", 0))


def conditions(space: Namespace, deployment: str) -> list[Object]:
    found: list[Object] = space.get("deployments", deployment)["status"].get("conditions", [])
    return found
