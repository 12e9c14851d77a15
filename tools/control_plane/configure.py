"""What a control plane has beyond its programs: custom resources, stages and nodes."""

import time
from collections.abc import Callable, Sequence

from tools.control_plane import crds
from tools.control_plane.api import Api, ApiError
from tools.control_plane.nodes import NODE_GROUP_LABEL, NodeGroup, Object, render_nodes
from tools.control_plane.stages import Simulation, render_stages

_NODES = "/api/v1/nodes"
_STAGES = "/apis/kwok.x-k8s.io/v1alpha1/stages"
_DEFAULT_SERVICE_ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"
_WAIT_SECONDS = 60.0
_POLL_SECONDS = 0.05


def configure_stages(api: Api, simulation: Simulation) -> None:
    """Install the stages, once the API server is ready; ApiError if it does not get ready or refuses."""
    _wait("the API server to be ready", lambda: _answers(api, "/readyz"))
    _wait("kwok's stages to be served", lambda: _answers(api, _STAGES))
    _apply_only(api, _STAGES, render_stages(simulation), _names(api, _STAGES))


def configure_nodes(api: Api, groups: Sequence[NodeGroup]) -> None:
    """Install the nodes of `groups`, remove others, and wait until pods can run on them.

    Raises:
        ApiError: the API server refuses something, or something does not get ready.
    """
    nodes = render_nodes(groups)
    _apply_only(api, _NODES, nodes, _names(api, f"{_NODES}?labelSelector={NODE_GROUP_LABEL}"))
    for node in nodes:
        without_spec = {key: value for key, value in node.items() if key != "spec"}
        api.apply(f"{_NODES}/{node['metadata']['name']}/status", without_spec)
    _wait("the nodes to be ready", lambda: {node["metadata"]["name"] for node in nodes} <= _ready_nodes(api))
    # Pods are refused until their namespace has it.
    _wait("the default service account", lambda: _answers(api, _DEFAULT_SERVICE_ACCOUNT))


def configure_custom_resources(api: Api, definitions: Sequence[Object]) -> None:
    """Install `definitions` and wait until their resources are served; ApiError if the API server refuses one."""
    for definition in definitions:
        crds.apply_definition(api, definition)
    _wait("the custom resources to be served", lambda: all(crds.is_served(api, each) for each in definitions))


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


def _answers(api: Api, path: str) -> bool:
    try:
        api.get_text(path)
    except ApiError:
        return False
    return True


def _wait(what: str, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _WAIT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise ApiError(f"waited {_WAIT_SECONDS:.0f} s for {what}")
        time.sleep(_POLL_SECONDS)
