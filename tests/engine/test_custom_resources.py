"""Every custom resource that the layers render, against the real schemas on a real API server; nothing is kept."""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from components.autoscaling import ScalerPlan, scaled_object_spec
from components.edges import envoy_gateway
from components.monitoring.rules import rule_groups
from components.monitoring.scraping import chip_monitor_spec, server_monitor_spec
from components.node_pool import node_class_spec, node_pool_spec
from components.nodegroup import Placement
from components.platform import NodeGroupPlan
from components.settings.autoscaling import AutoscalerSettings
from components.settings.node_groups import CreateSettings
from neuron.ami import AmiRelease
from neuron.images import IMAGE_LINES
from neuron.instances import instance_type
from neuron.rollout import derive_drain
from neuron.scaling import Schedule, derive_scaling
from tests.edge import plans
from tests.monitoring.promtool import RUNBOOK, TINYLLAMA
from tests.unit.builders import model
from tools.control_plane import ControlPlane
from tools.control_plane.api import Api, ApiError
from tools.control_plane.crds import SOURCES, all_definitions, resource_path
from tools.control_plane.nodes import Object

NAMESPACE = "default"


@dataclass(frozen=True)
class Rendered:
    """A manifest as a layer renders it, and a change that its schema must refuse: a path below it and a wrong value."""

    manifest: Object
    wrong_at: tuple[str | int, ...]
    wrong_value: object

    @property
    def wrong(self) -> Object:
        changed = copy.deepcopy(self.manifest)
        inner: Any = changed
        for step in self.wrong_at[:-1]:
            inner = inner[step]
        inner[self.wrong_at[-1]] = self.wrong_value
        return changed


def manifest(api_version: str, kind: str, spec: Object) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "rendered"}, "spec": spec}


def scaled_object() -> Object:
    hours = (Schedule("0 8 * * 1-5", "0 20 * * 1-5", "Asia/Seoul", 2),)
    drain = derive_drain(IMAGE_LINES["nxdi-0.13"], longest_request_seconds=30)
    scaling = derive_scaling(1, 3, model(), drain, schedule=hours)
    plan = ScalerPlan("rendered", "vllm", scaling, AutoscalerSettings())
    return manifest("keda.sh/v1alpha1", "ScaledObject", scaled_object_spec(plan, "rendered"))


def node_group(instance: str) -> NodeGroupPlan:
    create = CreateSettings(provisioner="karpenter")
    release = AmiRelease("1.36.2-20260625", "1.36", "20260625")
    return NodeGroupPlan("rendered", instance_type(instance), 4, create, release, (), ())


def node_class(instance: str) -> Object:
    placement = Placement("cluster", "1.36", ["subnet-0a", "subnet-0b"])
    return manifest("karpenter.k8s.aws/v1", "EC2NodeClass", node_class_spec(node_group(instance), placement, "nodes"))


def node_pool() -> Object:
    return manifest("karpenter.sh/v1", "NodePool", node_pool_spec(node_group("inf2.xlarge"), mounts_s3=True))


# For each kind of an edge's objects a place below the spec, and a value that must not stand there.
EDGE_WRONG: Mapping[str, tuple[tuple[str | int, ...], object]] = {
    "EnvoyProxy": (("provider", "type"), "Cloud"),
    "GatewayClass": (("controllerName",), "no controller"),
    "Gateway": (("listeners", 0, "port"), 0),
    "ClientTrafficPolicy": (("timeout", "http", "idleTimeout"), "soon"),
    "SecurityPolicy": (("apiKeyAuth", "extractFrom"), []),
    "BackendTrafficPolicy": (("circuitBreaker", "maxParallelRequests"), -1),
    "HTTPRoute": (("rules", 0, "timeouts", "request"), "soon"),
}


def edge() -> dict[str, Rendered]:
    """The objects of an edge with everything that a stack file can ask for."""
    settings = {
        "kind": "envoy-gateway",
        "scheme": "internet-facing",
        "sourceRanges": ["203.0.113.0/24"],
        "hostname": "llm.example.com",
        "tls": {"secret": "tls"},
        "limits": {"requestsPerMinute": 600},
    }
    made = {one.kind: one for one in envoy_gateway.manifests(plans.plan(settings), {"vllm": "api-keys"})}
    return {
        kind: Rendered(manifest(one.api_version, kind, dict(one.spec)), ("spec", *EDGE_WRONG[kind][0]), wrong)
        for kind, one in made.items()
        for wrong in [EDGE_WRONG[kind][1]]
    }


def monitoring(kind: str, spec: Object) -> Object:
    return manifest("monitoring.coreos.com/v1", kind, spec)


# One entry for each kind of custom resource, from the pure function that builds it.
RENDERED: Mapping[str, Rendered] = {
    "PodMonitor of servers": Rendered(
        monitoring("PodMonitor", server_monitor_spec([TINYLLAMA])),
        ("spec", "podMetricsEndpoints", 0, "interval"),
        "soon",
    ),
    "PodMonitor of chips": Rendered(
        monitoring("PodMonitor", chip_monitor_spec("monitoring")), ("spec", "podMetricsEndpoints", 0, "port"), 8000
    ),
    "PrometheusRule": Rendered(
        monitoring("PrometheusRule", {"groups": rule_groups([TINYLLAMA], RUNBOOK)}),
        ("spec", "groups", 1, "rules", 0, "for"),
        "a minute",
    ),
    "ScaledObject": Rendered(scaled_object(), ("spec", "maxReplicaCount"), 0),
    "NodePool": Rendered(node_pool(), ("spec", "disruption", "consolidationPolicy"), "WhenIdle"),
    "EC2NodeClass": Rendered(node_class("inf2.xlarge"), ("spec", "amiSelectorTerms"), []),
    "EC2NodeClass with an instance store": Rendered(node_class("trn1.32xlarge"), ("spec", "instanceStorePolicy"), "x"),
    **edge(),
}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """An API server with all the custom resources that the layers have objects of."""
    plane = ControlPlane(tmp_path_factory.mktemp("schemas") / "control-plane", crds=tuple(SOURCES))
    try:
        plane.start()
        yield Api(plane.kubeconfig)
    finally:
        plane.stop()


def check(api: Api, manifest: Object) -> Object:
    """What the API server would make of a manifest, in a namespace that exists."""
    group, _, version = manifest["apiVersion"].partition("/")
    (definition,) = (
        one
        for one in all_definitions(SOURCES, lambda _: None)
        if (one["spec"]["group"], one["spec"]["names"]["kind"]) == (group, manifest["kind"])
    )
    metadata = dict(manifest["metadata"])
    if definition["spec"]["scope"] == "Namespaced":
        metadata["namespace"] = NAMESPACE
    path = f"{resource_path(definition, version, NAMESPACE)}/{metadata['name']}"
    return api.check(path, {**manifest, "metadata": metadata})


@pytest.mark.parametrize("name", RENDERED)
def test_what_a_layer_renders_is_accepted_as_it_is(api: Api, name: str) -> None:
    rendered = RENDERED[name].manifest
    accepted = check(api, rendered)
    # The API server may fill in defaults; what was stated it must keep.
    assert accepted["spec"].items() >= {key: accepted["spec"].get(key) for key in rendered["spec"]}.items()
    assert accepted["kind"] == rendered["kind"]


@pytest.mark.parametrize("name", RENDERED)
def test_a_wrong_value_in_it_is_refused(api: Api, name: str) -> None:
    with pytest.raises(ApiError, match=str(RENDERED[name].wrong_at[-1])):
        check(api, RENDERED[name].wrong)


@pytest.mark.parametrize("name", RENDERED)
def test_a_misspelt_field_in_it_is_refused(api: Api, name: str) -> None:
    manifest = RENDERED[name].manifest
    misspelt = {**manifest, "spec": {**manifest["spec"], "noSuchField": 1}}
    with pytest.raises(ApiError, match="noSuchField"):
        check(api, misspelt)
