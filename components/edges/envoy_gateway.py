"""Envoy Gateway: Gateway API objects and the policies that limit, ask for a key and pass /v1 alone.

https://gateway.envoyproxy.io/docs/api/extension_types/
"""

import json
from collections.abc import Mapping
from typing import Any

import pulumi

from components.addresses import ENVOY_GATEWAY_NAMESPACE
from components.edges import load_balancer
from components.edges.plan import EdgePlan, Manifest, Route
from neuron.edge import share
from neuron.images import PORT
from neuron.rollout import ENDPOINT_PROPAGATION_SECONDS, KILL_MARGIN_SECONDS

CHART = "envoy-gateway"
_GATEWAY_API = "gateway.networking.k8s.io/v1"
_ENVOY_API = "gateway.envoyproxy.io/v1alpha1"
_CONTROLLER = "gateway.envoyproxy.io/gatewayclass-controller"
# Of class, gateway and proxies: a stack has one of each.
NAME = "neuron-serving"
_LISTENER = "clients"
CLIENT_HEADER = "x-client-id"
# Envoy marks with it what a circuit breaker refuses, and nothing else that it answers 503 (docs/adr/0016).
_OVERLOADED_HEADER = "x-envoy-overloaded"
# What Envoy tells clients about servers, switched on together with the mark. The mark itself has to stay: headers are
# removed before responses are overridden.
_INTERNAL_HEADERS = ("x-envoy-upstream-service-time", "x-envoy-attempt-count")
# A body of a mebibyte takes a second at 8 Mbit/s: whoever needs longer holds a slot that others wait for.
_REQUEST_RECEIVED_SECONDS = 60
_HEADERS_RECEIVED_SECONDS = 10
# Shorter than the load balancer's own, so that it is Envoy that closes a connection, and says so.
_CONNECTION_IDLE_SECONDS = 300
_MINUTE_SECONDS = 60
# Threads of an Envoy at most, one a CPU. Each keeps connections of its own: with no more of them than requests, one
# thread's idle connections kept the requests of another waiting (measured: p99 14.3 s instead of 1.9 s).
_WORKER_THREADS = 64


def chart_values() -> dict[str, Any]:
    """Values of the gateway's Helm chart: two controllers, so that a node may go."""
    return {
        "deployment": {"replicas": 2},
        "podDisruptionBudget": {"minAvailable": 1},
    }


def manifests(plan: EdgePlan, key_secrets: Mapping[str, pulumi.Input[str]]) -> list[Manifest]:
    """All objects of the edge in the order in which they need each other; `key_secrets` by namespace."""
    shared = [_envoy_proxy(plan), _gateway_class(), _gateway(plan), _client_traffic_policy(plan)]
    routed = [one for route in plan.routes for one in _of_route(plan, route, key_secrets[route.namespace])]
    return [*shared, *routed]


def _of_route(plan: EdgePlan, route: Route, key_secret: pulumi.Input[str]) -> list[Manifest]:
    """What stands before one server. The policies come first: without them its route would be open for a moment."""
    return [_security_policy(route, key_secret), _backend_traffic_policy(plan, route), _http_route(route)]


def _gateway_class() -> Manifest:
    parameters = {
        "group": "gateway.envoyproxy.io",
        "kind": "EnvoyProxy",
        "name": NAME,
        "namespace": ENVOY_GATEWAY_NAMESPACE,
    }
    spec = {"controllerName": _CONTROLLER, "parametersRef": parameters}
    return Manifest(_GATEWAY_API, "GatewayClass", NAME, None, spec)


def _envoy_proxy(plan: EdgePlan) -> Manifest:
    """The proxies and their load balancer. A proxy that stops first finishes the longest request."""
    drain_seconds = plan.longest_request_seconds + ENDPOINT_PROPAGATION_SECONDS
    service: dict[str, Any] = {
        "type": "LoadBalancer",
        "loadBalancerClass": load_balancer.LOAD_BALANCER_CLASS,
        "annotations": load_balancer.annotations(
            plan.settings, plan.port, plan.longest_request_seconds, deregistration_seconds=drain_seconds
        ),
    }
    if plan.settings.source_ranges:
        service["loadBalancerSourceRanges"] = list(plan.settings.source_ranges)
    memory = "512Mi"
    kubernetes = {
        "envoyDeployment": {
            "replicas": plan.settings.proxies,
            "container": {"resources": {"requests": {"cpu": "250m", "memory": memory}, "limits": {"memory": memory}}},
        },
        "envoyPDB": {"maxUnavailable": 1},
        "envoyService": service,
    }
    spec = {
        "provider": {"type": "Kubernetes", "kubernetes": kubernetes},
        "shutdown": {
            "drainTimeout": f"{drain_seconds + KILL_MARGIN_SECONDS}s",
            "minDrainDuration": f"{ENDPOINT_PROPAGATION_SECONDS}s",
        },
    }
    return Manifest(_ENVOY_API, "EnvoyProxy", NAME, ENVOY_GATEWAY_NAMESPACE, spec)


def _gateway(plan: EdgePlan) -> Manifest:
    tls = plan.settings.tls
    # With a certificate of ACM the load balancer speaks TLS, and what arrives here is plain.
    own_tls = tls is not None and tls.secret is not None
    listener: dict[str, Any] = {
        "name": _LISTENER,
        "protocol": "HTTPS" if own_tls else "HTTP",
        "port": plan.port,
        "allowedRoutes": {"namespaces": {"from": "Selector", "selector": _by_name(plan.namespaces)}},
    }
    if tls is not None and own_tls:
        listener["tls"] = {"mode": "Terminate", "certificateRefs": [{"kind": "Secret", "name": tls.secret}]}
    spec = {"gatewayClassName": NAME, "listeners": [listener]}
    return Manifest(_GATEWAY_API, "Gateway", NAME, ENVOY_GATEWAY_NAMESPACE, spec)


def _by_name(namespaces: tuple[str, ...]) -> dict[str, Any]:
    names = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": list(namespaces)}
    return {"matchExpressions": [names]}


def _client_traffic_policy(plan: EdgePlan) -> Manifest:
    """How long clients may take, and how long a stream may be silent: as long as the longest request is."""
    http = {
        "requestHeadersReceivedTimeout": f"{_HEADERS_RECEIVED_SECONDS}s",
        "requestReceivedTimeout": f"{_REQUEST_RECEIVED_SECONDS}s",
        "streamIdleTimeout": f"{plan.longest_request_seconds}s",
        "idleTimeout": f"{_CONNECTION_IDLE_SECONDS}s",
    }
    spec = {
        "targetRefs": [_target("Gateway", NAME)],
        "timeout": {"http": http},
        "headers": {"enableEnvoyHeaders": True, "lateResponseHeaders": {"remove": list(_INTERNAL_HEADERS)}},
    }
    return Manifest(_ENVOY_API, "ClientTrafficPolicy", NAME, ENVOY_GATEWAY_NAMESPACE, spec)


def _http_route(route: Route) -> Manifest:
    """The allowlist: what does not match has no route, and Envoy answers 404."""
    rule = {
        "matches": [{"path": {"type": "PathPrefix", "value": "/v1"}}],
        "backendRefs": [{"name": route.server, "port": PORT}],
        "timeouts": {"request": f"{route.timeout_seconds}s"},
    }
    spec: dict[str, Any] = {
        "parentRefs": [{"name": NAME, "namespace": ENVOY_GATEWAY_NAMESPACE, "sectionName": _LISTENER}],
        "rules": [rule],
    }
    if route.hostname is not None:
        spec["hostnames"] = [route.hostname]
    return Manifest(_GATEWAY_API, "HTTPRoute", route.server, route.namespace, spec)


def _security_policy(route: Route, key_secret: pulumi.Input[str]) -> Manifest:
    """The key is taken as OpenAI's clients send it, and goes no further; the server learns the owner's name."""
    key = {
        "credentialRefs": [{"name": key_secret}],
        "extractFrom": [{"headers": ["Authorization", "x-api-key"]}],
        "forwardClientIDHeader": CLIENT_HEADER,
        "sanitize": True,
    }
    spec = {"targetRefs": [_target("HTTPRoute", route.server)], "apiKeyAuth": key}
    return Manifest(_ENVOY_API, "SecurityPolicy", route.server, route.namespace, spec)


def _backend_traffic_policy(plan: EdgePlan, route: Route) -> Manifest:
    """The limits. Each Envoy counts for itself, so each gets its share; no request waits for a connection."""
    limit = share(route.concurrency, plan.settings.proxies)
    limits = plan.limits
    spec: dict[str, Any] = {
        "targetRefs": [_target("HTTPRoute", route.server)],
        "circuitBreaker": {
            "maxParallelRequests": limit,
            "maxPendingRequests": limit,
            "maxConnections": limit * _WORKER_THREADS,
        },
        "requestBuffer": {"limit": f"{limits.body_mib}Mi"},
        "responseOverride": [_refusal(_overflow(), limits.retry_after_seconds, "all servers are busy")],
    }
    if limits.requests_per_minute is not None:
        spec["rateLimit"] = _rate_limit(share(limits.requests_per_minute, plan.settings.proxies))
        spec["responseOverride"].append(_refusal(_over_rate(), _MINUTE_SECONDS, "too many requests a minute"))
    return Manifest(_ENVOY_API, "BackendTrafficPolicy", route.server, route.namespace, spec)


def _rate_limit(requests_per_minute: int) -> dict[str, Any]:
    selector = {"headers": [{"name": CLIENT_HEADER, "type": "Distinct"}]}
    rule = {"clientSelectors": [selector], "limit": {"requests": requests_per_minute, "unit": "Minute"}}
    return {"type": "Local", "local": {"rules": [rule]}}


def _overflow() -> dict[str, Any]:
    return {"responseHeaders": [{"name": _OVERLOADED_HEADER, "value": {"type": "Exact", "value": "true"}}]}


def _over_rate() -> dict[str, Any]:
    return {"statusCodes": [{"type": "Value", "value": 429}]}


def _refusal(match: dict[str, Any], retry_after_seconds: int, message: str) -> dict[str, Any]:
    """429 with Retry-After and an error in OpenAI's form, in place of what Envoy itself answers."""
    body = {"error": {"message": message, "type": "rate_limit_error", "code": 429}}
    return {
        "match": match,
        "source": "Local",
        "response": {
            "statusCode": 429,
            "contentType": "application/json",
            "body": {"type": "Inline", "inline": json.dumps(body)},
            "header": {"set": [{"name": "Retry-After", "value": str(retry_after_seconds)}]},
        },
    }


def _target(kind: str, name: str) -> dict[str, str]:
    return {"group": "gateway.networking.k8s.io", "kind": kind, "name": name}
