"""Everything about the edge that is decided before anything is registered."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from components.settings.charts import ChartsSettings
from components.settings.edge import EdgeSettings, LimitsSettings


@dataclass(frozen=True)
class Route:
    """One server behind the edge. `hostname` is None where every host is its own.

    `selector` selects its pods. `concurrency` is how many requests it may have in flight, `timeout_seconds` how long
    each may take, its wait in the server's queue included. A pod that stops serves for `deregistration_seconds`.
    """

    server: str
    namespace: str
    selector: Mapping[str, str]
    hostname: str | None
    concurrency: int
    timeout_seconds: int
    deregistration_seconds: int


@dataclass(frozen=True)
class EdgePlan:
    """The edge of a stack. `routes` has at least one."""

    settings: EdgeSettings
    charts: ChartsSettings
    routes: tuple[Route, ...]
    installs_controller: bool

    @property
    def limits(self) -> LimitsSettings:
        """The stated limits, or the defaults."""
        return self.settings.limits or LimitsSettings()

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The servers' namespaces, each once."""
        return tuple(dict.fromkeys(route.namespace for route in self.routes))

    @property
    def longest_request_seconds(self) -> int:
        """The longest request of all servers."""
        return max(route.timeout_seconds for route in self.routes)

    @property
    def is_https(self) -> bool:
        """Whether clients speak TLS."""
        return self.settings.tls is not None

    @property
    def port(self) -> int:
        """The port that clients connect to."""
        return 443 if self.is_https else 80

    def url(self, route: Route) -> str | None:
        """What clients of a server call; None where no name is known beforehand."""
        if route.hostname is None:
            return None
        return f"{'https' if self.is_https else 'http'}://{route.hostname}/v1"


@dataclass(frozen=True)
class Manifest:
    """A Kubernetes object; `namespace` is None for what belongs to the cluster."""

    api_version: str
    kind: str
    name: str
    namespace: str | None
    spec: Mapping[str, Any]
    annotations: Mapping[str, pulumi.Input[str]] | None = None

    def metadata(self) -> dict[str, Any]:
        """The object's metadata, without what it does not have."""
        stated = {"name": self.name, "namespace": self.namespace, "annotations": self.annotations}
        return {key: value for key, value in stated.items() if value is not None}
