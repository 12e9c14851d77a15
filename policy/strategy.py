"""How a Deployment states its rolling update."""

from policy.values import Node

# https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#max-surge
DEFAULT_COUNT = "25%"


def update_counts(strategy: Node) -> tuple[Node, Node]:
    """maxSurge and maxUnavailable."""
    return strategy.at("rollingUpdate", "maxSurge"), strategy.at("rollingUpdate", "maxUnavailable")


def stated_count(count: Node) -> int | float | str:
    """A count or percentage, the default of Kubernetes where there is none.

    Text such as "1", which the API server refuses by itself, is read as the number that was meant.
    """
    for value in (count.integer(), count.number()):
        if value is not None:
            return value
    return DEFAULT_COUNT
