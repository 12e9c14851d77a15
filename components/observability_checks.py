"""What the values about observability mean together: what only an installed Prometheus has, and what needs EKS."""

from collections.abc import Iterator

from components.faults import Fault
from components.settings import Settings
from components.settings.cluster import CreatedCluster, ExistingCluster
from components.settings.observability import ObservabilitySettings
from neuron.metrics import TIME_TO_FIRST_TOKEN_BOUNDS_SECONDS


def check_observability(settings: Settings) -> Iterator[Fault]:
    """All faults of a well-formed `observability` section and of the servers' objectives."""
    yield from _objectives(settings)
    if settings.observability is None:
        return
    if settings.observability.prometheus == "existing":
        yield from _of_the_chart_only(settings.observability)
    on_eks = isinstance(settings.cluster, CreatedCluster | ExistingCluster)
    if settings.observability.remote_write_workspace is not None and not on_eks:
        yield Fault(
            "observability.remoteWriteWorkspace",
            f"a workspace, in a cluster of mode {settings.cluster.mode}",
            "mode create or existing: a role is given to Prometheus by the cluster's EKS name",
            "leave it out, or change cluster.mode",
        )


def _objectives(settings: Settings) -> Iterator[Fault]:
    """An objective between two buckets of the histogram could only be guessed at."""
    bounds = TIME_TO_FIRST_TOKEN_BOUNDS_SECONDS
    for index, serving in enumerate(settings.serving):
        objective = serving.first_token_slo_seconds
        if objective not in bounds:
            nearest = min(bounds, key=lambda bound: abs(bound - objective))
            yield Fault(
                f"serving[{index}].firstTokenSloSeconds",
                f"{objective:g}",
                f"a bound of vLLM's histogram: {', '.join(f'{bound:g}' for bound in bounds)}",
                f"set {nearest:g}",
            )


def _of_the_chart_only(observability: ObservabilitySettings) -> Iterator[Fault]:
    stated = {
        "storageClass": observability.storage_class,
        "grafanaAdminSecret": observability.grafana_admin_secret,
        "alertmanagerConfigSecret": observability.alertmanager_config_secret,
        "remoteWriteWorkspace": observability.remote_write_workspace,
    }
    for key, value in stated.items():
        if value is not None:
            yield Fault(
                f"observability.{key}",
                f"{value} with prometheus: existing",
                "nothing: the Prometheus that exists has its own settings",
                "leave it out, or set prometheus: install",
            )
