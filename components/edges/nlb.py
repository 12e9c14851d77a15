"""A Network Load Balancer straight before each server: it forwards connections, and reads no request, key or path."""

import pulumi_kubernetes.core.v1 as core

from components.edges import load_balancer
from components.edges.plan import EdgePlan, Route
from neuron.rollout import READINESS


def service_annotations(plan: EdgePlan, route: Route) -> dict[str, str]:
    """The load balancer's settings; its health check asks what the readiness probe asks."""
    health_check = {
        "healthcheck-protocol": "http",
        "healthcheck-path": READINESS.path,
        "healthcheck-interval": str(READINESS.period_seconds),
    }
    return {
        **load_balancer.annotations(plan.settings, plan.port, route.timeout_seconds, route.deregistration_seconds),
        **{f"{load_balancer.PREFIX}{key}": value for key, value in health_check.items()},
    }


def service_spec(plan: EdgePlan, route: Route) -> core.ServiceSpecArgsDict:
    """The Service of type LoadBalancer that selects a server's pods."""
    ranges = list(plan.settings.source_ranges)
    return {
        "type": "LoadBalancer",
        "load_balancer_class": load_balancer.LOAD_BALANCER_CLASS,
        "selector": dict(route.selector),
        "ports": [{"name": "http", "port": plan.port, "target_port": "http"}],
        **({"load_balancer_source_ranges": ranges} if ranges else {}),
    }
