"""Rollouts through the real engine on the real controllers: the source's scenario A, and the derived strategies.

Requests at 5 a second are judged as tests/engine/traffic.py says.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from neuron.startup import COLD
from tests.engine.conftest import node_groups, wait_until
from tests.engine.stack import Stack, make_stack
from tests.engine.traffic import traffic
from tools.control_plane import ControlPlane
from tools.control_plane.api import Api

TIME_FACTOR = 20.0
# Takes the derived strategy out of the Deployment, and the deadline down to what a test can wait for.
KUBERNETES_DEFAULTS = """
import pulumi
def default_strategy(args):
    if args.type_ != "kubernetes:apps/v1:Deployment":
        return None
    spec = {key: value for key, value in args.props["spec"].items() if key != "strategy"}
    timeouts = pulumi.CustomTimeouts(create="60s", update="15s")
    merged = pulumi.ResourceOptions.merge(args.opts, pulumi.ResourceOptions(custom_timeouts=timeouts))
    return pulumi.ResourceTransformResult({**args.props, "spec": spec}, merged)
pulumi.runtime.register_resource_transform(default_strategy)
"""


@pytest.fixture(scope="module")
def one_node_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """One trn1.2xlarge node, the source's cluster; pods start cold, for nothing can be published on a full node."""
    directory = tmp_path_factory.mktemp("one") / "control-plane"
    plane = ControlPlane(directory, node_groups({"trn1.2xlarge": 1}), COLD, TIME_FACTOR)
    try:
        plane.start()
        yield plane
    finally:
        plane.stop()


@contextmanager
def destroyed_afterwards(stack: Stack) -> Iterator[Stack]:
    """A stack that gives its chips back however the test ends: the next test counts on them."""
    try:
        yield stack
    finally:
        ended = stack.destroy()
    assert ended.exit_code == 0, ended.output


@contextmanager
def trainium(directory: Path, plane: ControlPlane) -> Iterator[Stack]:
    """The stack on the source's one trn1.2xlarge."""
    stack = make_stack(directory, plane.kubeconfig, nodes=1)
    stack.values["nodeGroups"][0]["instanceType"] = "trn1.2xlarge"
    with destroyed_afterwards(stack):
        yield stack


def unschedulable(plane: ControlPlane, namespace: str) -> list[str]:
    """Why the pods that are Pending there could not be scheduled."""
    pods = Api(plane.kubeconfig).get(f"/api/v1/namespaces/{namespace}/pods")["items"]
    conditions = [
        one for pod in pods if pod["status"]["phase"] == "Pending" for one in pod["status"].get("conditions", [])
    ]
    return [one["message"] for one in conditions if one["type"] == "PodScheduled" and one["status"] == "False"]


def has_rolled(plane: ControlPlane, namespace: str) -> bool:
    """Whether the namespace's Deployment has all its pods new and available, by the controller's own account."""
    (deployment,) = Api(plane.kubeconfig).get(f"/apis/apps/v1/namespaces/{namespace}/deployments")["items"]
    status, wanted = deployment["status"], deployment["spec"]["replicas"]
    counts = [status.get(name, 0) for name in ("replicas", "updatedReplicas", "availableReplicas")]
    return bool(status["observedGeneration"] == deployment["metadata"]["generation"]) and counts == [wanted] * 3


def roll(stack: Stack) -> None:
    """Change what is served, so that the next update rolls the pods."""
    stack.values["serving"][0]["model"]["maxNumSeqs"] *= 2


def test_kubernetes_default_strategy_never_completes_on_a_full_node(
    one_node_plane: ControlPlane, tmp_path: Path
) -> None:
    with trainium(tmp_path / "scenario-a", one_node_plane) as stack:
        stack.change_main(KUBERNETES_DEFAULTS)
        first = stack.run("up", "--stack", "test", "--yes")
        assert first.exit_code == 0, first.output
        roll(stack)
        with traffic(one_node_plane, "scenario-a") as requests:
            # The exit code is left out: on a slow control plane the provider's await can end before the controller
            # has seen the change, and calls the old pod a success.
            stack.run("up", "--stack", "test", "--yes")
            wait_until(lambda: unschedulable(one_node_plane, "scenario-a"), seconds=30)
            time.sleep(COLD.total_seconds * 1.2 / TIME_FACTOR)
        (message,) = unschedulable(one_node_plane, "scenario-a")
        assert "Insufficient aws.amazon.com/neuron" in message
        assert requests.failed == 0, "the old pod went on serving, which is why nobody noticed"


def test_the_derived_strategy_completes_on_the_same_node_with_the_outage_that_was_forecast(
    one_node_plane: ControlPlane, tmp_path: Path
) -> None:
    with trainium(tmp_path / "derived", one_node_plane) as stack:
        first = stack.up()
        assert first.exit_code == 0, first.output
        roll(stack)
        with traffic(one_node_plane, "derived") as requests:
            second = stack.up()
            wait_until(lambda: has_rolled(one_node_plane, "derived"), seconds=60)
        assert second.exit_code == 0, second.output
    # 10 s propagation + 30 s longest request + 2 s exit + 249 s cold start + 2.5 s until a probe sees it.
    assert "about 294 s without a ready endpoint" in second.output
    assert requests.outage_seconds == pytest.approx(293.5, rel=0.1)


def test_with_a_second_node_an_endpoint_is_ready_at_every_moment(control_plane: ControlPlane, tmp_path: Path) -> None:
    with destroyed_afterwards(make_stack(tmp_path / "spare-node", control_plane.kubeconfig, nodes=2)) as stack:
        first = stack.up()
        assert first.exit_code == 0, first.output
        roll(stack)
        with traffic(control_plane, "spare-node") as requests:
            rolled = stack.up()
            wait_until(lambda: has_rolled(control_plane, "spare-node"), seconds=60)
        assert rolled.exit_code == 0, rolled.output
    assert requests.sent > 100
    assert requests.failed == 0
