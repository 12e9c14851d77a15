"""What a control plane has beyond its programs: custom resources, stages and nodes."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from tools.control_plane import crds
from tools.control_plane.api import Api, ApiError
from tools.control_plane.nodes import NODE_GROUP_LABEL, NodeGroup, Object, render_nodes
from tools.control_plane.stages import Simulation, render_stages
from tools.errors import Report

_NODES = "/api/v1/nodes"
_STAGES = "/apis/kwok.x-k8s.io/v1alpha1/stages"
_STAGE_CRD = "stages.kwok.x-k8s.io"
_DEFAULT_SERVICE_ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"
_WAIT_SECONDS = 60.0
_POLL_SECONDS = 0.05
_PARALLEL_REQUESTS = 4


def configure(api: Api, groups: Sequence[NodeGroup], simulation: Simulation, report: Report) -> None:
    """Install custom resources, stages and the nodes of `groups`, remove other nodes, and wait until pods can start.

    Raises:
        ApiError: the API server refuses something, or something does not become ready.
        ToolchainError: the files of the custom resources cannot be had.
    """
    nodes = render_nodes(groups)
    definitions = [each for source in crds.SOURCES for each in crds.definitions(crds.crd_files(source, report))]
    names = {name for name, _ in definitions}
    report(f"control plane: {len(nodes)} nodes, {len(definitions)} custom resources")
    with ThreadPoolExecutor(_PARALLEL_REQUESTS) as pool:
        waiting = [pool.submit(_configure_stages, api, simulation), pool.submit(_configure_nodes, api, nodes)]
        waiting += [pool.submit(crds.apply_crd, api, name, text) for name, text in definitions]
        for each in waiting:
            each.result()
    _wait("the custom resources to be served", lambda: names <= crds.established(api))
    _wait("the nodes to be ready", lambda: {node["metadata"]["name"] for node in nodes} <= _ready_nodes(api))
    # Pods are refused until their namespace has it.
    _wait("the default service account", lambda: _exists(api, _DEFAULT_SERVICE_ACCOUNT))


def _configure_stages(api: Api, simulation: Simulation) -> None:
    _wait("kwok's own resources", lambda: _STAGE_CRD in crds.established(api))
    _apply_only(api, _STAGES, render_stages(simulation), _names(api, _STAGES))


def _configure_nodes(api: Api, nodes: Sequence[Object]) -> None:
    _apply_only(api, _NODES, nodes, _names(api, f"{_NODES}?labelSelector={NODE_GROUP_LABEL}"))
    for node in nodes:
        without_spec = {key: value for key, value in node.items() if key != "spec"}
        api.apply(f"{_NODES}/{node['metadata']['name']}/status", without_spec)


def _apply_only(api: Api, path: str, objects: Sequence[Object], existing: set[str]) -> None:
    """Apply `objects` and delete those of `existing` that are not among them."""
    for each in objects:
        api.apply(f"{path}/{each['metadata']['name']}", each)
    for name in existing - {each["metadata"]["name"] for each in objects}:
        api.delete(f"{path}/{name}")


def _names(api: Api, path: str) -> set[str]:
    return {each["metadata"]["name"] for each in api.get(path)["items"]}


def _ready_nodes(api: Api) -> set[str]:
    return {node["metadata"]["name"] for node in api.get(_NODES)["items"] if is_ready(node)}


def is_ready(resource: Object) -> bool:
    """Whether a node or a pod has the condition Ready."""
    conditions = resource.get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _exists(api: Api, path: str) -> bool:
    try:
        api.get(path)
    except ApiError:
        return False
    return True


def _wait(what: str, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _WAIT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise ApiError(f"waited {_WAIT_SECONDS:.0f} s for {what}")
        time.sleep(_POLL_SECONDS)
