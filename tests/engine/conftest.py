"""Real control planes in temporary folders, and what tests do with them."""

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

from neuron.instances import instance_type
from neuron.startup import WARM, StartUp
from tools.control_plane import ControlPlane, NodeGroup
from tools.control_plane.api import Api
from tools.control_plane.nodes import Object

TWO_INFERENTIA = {"inf2.xlarge": 2}


class StartControlPlane(Protocol):
    """Starts a control plane of the test's own; it is stopped when the test ends."""

    def __call__(
        self, nodes: dict[str, int] = ..., start_up: StartUp = ..., time_factor: float = ...
    ) -> ControlPlane: ...


def node_groups(nodes: dict[str, int]) -> tuple[NodeGroup, ...]:
    """One node group for each instance type."""
    return tuple(NodeGroup(name.replace(".", "-"), instance_type(name), count) for name, count in nodes.items())


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane for all tests that do not change it: two inf2.xlarge nodes, warm starts, 20 times as fast."""
    plane = ControlPlane(tmp_path_factory.mktemp("shared") / "control-plane", node_groups(TWO_INFERENTIA))
    try:
        plane.start()
        yield plane
    finally:
        plane.stop()


@pytest.fixture
def start_control_plane(tmp_path: Path) -> Iterator[StartControlPlane]:
    started: list[ControlPlane] = []

    def start(nodes: dict[str, int] | None = None, start_up: StartUp = WARM, time_factor: float = 20.0) -> ControlPlane:
        directory = tmp_path / f"control-plane-{len(started)}"
        plane = ControlPlane(directory, node_groups(nodes or TWO_INFERENTIA), start_up, time_factor)
        started.append(plane)
        plane.start()
        return plane

    yield start
    for plane in started:
        plane.stop()


@dataclass(frozen=True)
class Namespace:
    """A namespace of one test, addressed by resource and name."""

    api: Api
    name: str

    def get(self, resource: str, name: str) -> Object:
        return self.api.get(f"{self._path(resource)}/{name}")

    def list(self, resource: str) -> list[Object]:
        items: list[Object] = self.api.get(self._path(resource))["items"]
        return items

    def apply(self, resource: str, body: Object) -> Object:
        return self.api.apply(f"{self._path(resource)}/{body['metadata']['name']}", body)

    def evict(self, pod: str) -> None:
        """Ask for the pod's eviction, as a drain does; ApiError where its disruption budget forbids it now."""
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": self.name}}
        self.api.create(f"{self._path('pods')}/{pod}/eviction", body)

    def is_rolled_out(self, deployment: str) -> bool:
        """As `kubectl rollout status` sees it."""
        found = self.get("deployments", deployment)
        replicas, status = found["spec"]["replicas"], found["status"]
        return status.get("observedGeneration") == found["metadata"]["generation"] and all(
            status.get(count, 0) == replicas for count in ("replicas", "updatedReplicas", "availableReplicas")
        )

    def delete(self, resource: str, name: str) -> None:
        self.api.delete(f"{self._path(resource)}/{name}")

    def delete_all(self, resource: str) -> None:
        self.api.delete(self._path(resource))

    def has(self, resource: str, name: str) -> bool:
        return name in _names(self.api.get(self._path(resource)))

    def _path(self, resource: str) -> str:
        group = {
            "deployments": "/apis/apps/v1",
            "jobs": "/apis/batch/v1",
            "endpointslices": "/apis/discovery.k8s.io/v1",
            "poddisruptionbudgets": "/apis/policy/v1",
        }
        return f"{group.get(resource, '/api/v1')}/namespaces/{self.name}/{resource}"


@contextmanager
def temporary_namespace(plane: ControlPlane) -> Iterator[Namespace]:
    """A namespace that takes all it has with it, so that its chips are free again."""
    api = Api(plane.kubeconfig)
    space = Namespace(api, f"test-{uuid.uuid4().hex[:8]}")
    path = f"/api/v1/namespaces/{space.name}"
    api.apply(path, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space.name}})
    try:
        wait_until(lambda: space.has("serviceaccounts", "default"), seconds=10)
        yield space
    finally:
        for resource in ("deployments", "jobs", "pods"):
            space.delete_all(resource)
        wait_until(lambda: not space.list("pods"), seconds=60)
        # Not waited for: its controller counts in real time.
        api.delete(path)


def _names(objects: Object) -> set[str]:
    return {item["metadata"]["name"] for item in objects["items"]}


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[Namespace]:
    """A namespace of the shared control plane."""
    with temporary_namespace(control_plane) as made:
        yield made


def wait_until(condition: Callable[[], object], seconds: float) -> float:
    """Wait for `condition` to hold and return the seconds that it took; the test fails if it does not in time."""
    started = time.monotonic()
    while not condition():
        if time.monotonic() - started > seconds:
            pytest.fail(f"not so within {seconds} s")
        time.sleep(0.02)
    return time.monotonic() - started
