"""The model servers as rules and dashboards see them, and what those know of a stack without asking it."""

from collections.abc import Sequence
from dataclasses import dataclass

from components.deployment import ServingPlan
from neuron.instances import InstanceType


@dataclass(frozen=True)
class ObservedServer:
    """One model server. `pod_usd_per_hour` is a pod's share of its node's price, None where no price is published.

    `publishes` says that pods find their model published: a cache miss is then a fault.
    """

    name: str
    namespace: str
    max_num_seqs: int
    first_token_slo_seconds: float
    pod_usd_per_hour: float | None
    publishes: bool


def observed(plan: ServingPlan, first_token_slo_seconds: float) -> ObservedServer:
    """What is known of a plan's server."""
    return ObservedServer(
        name=plan.name,
        namespace=plan.namespace,
        max_num_seqs=plan.model.max_num_seqs,
        first_token_slo_seconds=first_token_slo_seconds,
        pod_usd_per_hour=_pod_usd_per_hour(plan.instance, plan.chips),
        publishes=plan.publishes,
    )


def namespaces(servers: Sequence[ObservedServer]) -> list[str]:
    """The namespaces of the servers, each once."""
    return sorted({server.namespace for server in servers})


def _pod_usd_per_hour(instance: InstanceType, chips: int) -> float | None:
    price = instance.price_usd_per_hour
    return None if price is None else price * chips / instance.chips
