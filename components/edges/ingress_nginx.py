"""ingress-nginx, as the measured system had it: annotations for each server, and limits for all in its ConfigMap.

Retired upstream: the last controller is of March 2026. Its own limits count for each address of a client; what bounds a
server's queue, whoever asks, is the zone that the snippets below add.
https://kubernetes.github.io/ingress-nginx/user-guide/nginx-configuration/
"""

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_kubernetes.networking.v1 as networking

from components.edges import load_balancer
from components.edges.plan import EdgePlan, Route
from neuron.edge import share
from neuron.images import PORT
from neuron.rollout import ENDPOINT_PROPAGATION_SECONDS, KILL_MARGIN_SECONDS

CHART = "ingress-nginx"
RETIRED = (
    "ingress-nginx is retired upstream since March 2026: no fault in it is mended any more, security faults included;"
    " edge.kind envoy-gateway has the same limits"
)
_PREFIX = "nginx.ingress.kubernetes.io/"
_ZONE_MIB = 1


def ingress_class(plan: EdgePlan) -> str:
    """The name of the Ingress class, which tells readers and policies who can reach it."""
    return "nginx-internal" if plan.settings.scheme == "internal" else "nginx"


def chart_values(plan: EdgePlan) -> dict[str, Any]:
    """Values of the controller's Helm chart.

    Without admission webhooks: they need Helm's hooks, and were the way in of CVE-2025-1974.
    """
    memory = "512Mi"
    drain_seconds = plan.longest_request_seconds + ENDPOINT_PROPAGATION_SECONDS
    return {
        "controller": {
            "replicaCount": plan.settings.proxies,
            "admissionWebhooks": {"enabled": False},
            "allowSnippetAnnotations": False,
            "ingressClassResource": {"name": ingress_class(plan), "default": False},
            "ingressClass": ingress_class(plan),
            "config": configuration(plan),
            "terminationGracePeriodSeconds": drain_seconds + KILL_MARGIN_SECONDS,
            "resources": {"requests": {"cpu": "250m", "memory": memory}, "limits": {"memory": memory}},
            "service": _service(plan, drain_seconds),
        }
    }


def _service(plan: EdgePlan, drain_seconds: int) -> dict[str, Any]:
    tls = plan.settings.tls
    # With a certificate of ACM the load balancer speaks TLS, and what arrives at the https port is plain.
    at_load_balancer = tls is not None and tls.certificate_arn is not None
    return {
        "type": "LoadBalancer",
        "loadBalancerClass": load_balancer.LOAD_BALANCER_CLASS,
        "loadBalancerSourceRanges": list(plan.settings.source_ranges),
        "annotations": load_balancer.annotations(
            plan.settings, plan.port, plan.longest_request_seconds, deregistration_seconds=drain_seconds
        ),
        "enableHttp": not plan.is_https,
        "enableHttps": plan.is_https,
        "targetPorts": {"http": "http", "https": "http" if at_load_balancer else "https"},
    }


def configuration(plan: EdgePlan) -> dict[str, str]:
    """The controller's ConfigMap. It is the administrator's, so snippets in it need no leave of annotations."""
    limits = plan.limits
    return {
        "limit-conn-status-code": "429",
        "limit-req-status-code": "429",
        "server-tokens": "false",
        "ssl-redirect": "false",
        "worker-shutdown-timeout": f"{plan.longest_request_seconds + ENDPOINT_PROPAGATION_SECONDS}s",
        "http-snippet": "\n".join(
            [*map(_zone, plan.routes), f"map $status $retry_after {{ 429 {limits.retry_after_seconds}; }}"]
        ),
        "location-snippet": "\n".join(
            [*(_total_limit(plan, route) for route in plan.routes), "add_header Retry-After $retry_after always;"]
        ),
    }


def _zone(route: Route) -> str:
    """Counts requests of one server; those of the others have an empty key, which nginx does not count."""
    name = _zone_name(route)
    return (
        f'map "$namespace/$service_name" ${name} {{ "{route.namespace}/{route.server}" 1; }}\n'
        f"limit_conn_zone ${name} zone={name}:{_ZONE_MIB}m;"
    )


def _total_limit(plan: EdgePlan, route: Route) -> str:
    return f"limit_conn {_zone_name(route)} {share(route.concurrency, plan.settings.proxies)};"


def _zone_name(route: Route) -> str:
    return f"requests_{route.namespace}_{route.server}".replace("-", "_")


def annotations(plan: EdgePlan, route: Route, key_secret: pulumi.Input[str]) -> dict[str, pulumi.Input[str]]:
    """What the Ingress of a server says: limits, the key's Secret, and how long a silent request may take."""
    concurrency = share(route.concurrency, plan.settings.proxies)
    stated: dict[str, pulumi.Input[str]] = {
        "limit-connections": str(concurrency),
        "auth-type": "basic",
        "auth-secret-type": "auth-map",
        "auth-secret": key_secret,
        "auth-realm": "API key",
        "proxy-body-size": f"{plan.limits.body_mib}m",
        "proxy-buffering": "off",
        "proxy-read-timeout": str(route.timeout_seconds),
        "proxy-send-timeout": str(route.timeout_seconds),
        # A request that failed may have run: repeating it is for the client to decide.
        "proxy-next-upstream": "off",
    }
    if plan.limits.requests_per_minute is not None:
        stated |= {
            "limit-rpm": str(share(plan.limits.requests_per_minute, plan.settings.proxies)),
            # By itself five times the rate may come at once.
            "limit-burst-multiplier": "1",
        }
    return {f"{_PREFIX}{key}": value for key, value in stated.items()}


def ingress_spec(plan: EdgePlan, route: Route) -> networking.IngressSpecArgsDict:
    """The allowlist: what is not below /v1 goes to the controller's own backend, which answers 404."""
    path: networking.HTTPIngressPathArgsDict = {
        "path": "/v1",
        "path_type": "Prefix",
        "backend": {"service": {"name": route.server, "port": {"number": PORT}}},
    }
    host = {"host": route.hostname} if route.hostname is not None else {}
    hosts = {"hosts": [route.hostname]} if route.hostname is not None else {}
    tls = plan.settings.tls
    return {
        "ingress_class_name": ingress_class(plan),
        "rules": [{**host, "http": {"paths": [path]}}],
        **({"tls": [{**hosts, "secret_name": tls.secret}]} if tls is not None and tls.secret is not None else {}),
    }


def password_hashes(keys: Mapping[str, str]) -> dict[str, str]:
    """What nginx compares keys with, by client, as salted SHA-1 of RFC 2307: it knows no stronger hash everywhere.

    Keys are long and random (components/settings/api_keys.py sees to it), so nobody can guess them from a hash.
    """
    return {client: _ssha(client, key) for client, key in keys.items()}


def _ssha(client: str, key: str) -> str:
    # From the client's name: the same key gives the same Secret in every run.
    salt = hashlib.sha256(client.encode()).digest()[:8]
    digest = hashlib.sha1(key.encode() + salt, usedforsecurity=False).digest()
    return "{SSHA}" + base64.b64encode(digest + salt).decode()
