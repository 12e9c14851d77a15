"""What autoscaling means together with the rest of a stack file."""

from collections.abc import Iterator

from components.faults import Fault
from components.settings import Settings
from components.settings.serving import ServingSettings


def check_autoscaling(settings: Settings) -> Iterator[Fault]:
    """All faults of what scales model servers; that there is room for the largest scale is checked with the nodes."""
    for index, serving in enumerate(settings.serving):
        if serving.autoscaling is not None:
            yield from _server(f"serving[{index}].autoscaling", serving, settings)


def _server(path: str, serving: ServingSettings, settings: Settings) -> Iterator[Fault]:
    stated = serving.autoscaling
    if stated is None:
        return
    if settings.autoscaler is None:
        found = "a section, in a stack without an autoscaler"
        yield Fault(path, found, "autoscaling beside autoscaler, which scales it", "set autoscaler: {}")
    if stated.max_replicas < serving.replicas:
        found = f"{stated.max_replicas}, below replicas ({serving.replicas})"
        yield Fault(f"{path}.maxReplicas", found, f"{serving.replicas} or more", "raise it, or lower replicas")
    if stated.schedule and settings.autoscaler is not None and settings.autoscaler.kind != "keda":
        yield Fault(f"{path}.schedule", "a schedule beside prometheus-adapter", "one with keda", "drop one")
    for number, one in enumerate(stated.schedule):
        if not serving.replicas < one.replicas <= stated.max_replicas:
            allowed = f"more than replicas ({serving.replicas}), up to maxReplicas ({stated.max_replicas})"
            fix = f"set it to {stated.max_replicas}, or raise maxReplicas"
            yield Fault(f"{path}.schedule[{number}].replicas", str(one.replicas), allowed, fix)
