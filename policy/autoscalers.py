"""What scales a workload: HorizontalPodAutoscalers and KEDA's ScaledObjects."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from policy.manifests import Manifest, ObjectKey, manifests
from policy.resources import Resource, Stack

# https://keda.sh/docs/latest/reference/scaledobject-spec/#maxreplicacount
_KEDA_DEFAULT_MAXIMUM = 100
_DEFAULT_TARGET_KIND = "Deployment"

# The largest number of replicas that an autoscaler may set, by its target.
ReplicaMaxima = Mapping[ObjectKey, int]


@dataclass(frozen=True)
class Autoscaler:
    """An autoscaler and the workload that it scales."""

    manifest: Manifest
    target: ObjectKey

    @property
    def is_keda(self) -> bool:
        """Whether it is a ScaledObject."""
        return self.manifest.kind == "ScaledObject"

    @property
    def maximum(self) -> int | None:
        """The most replicas that it may set; None where that is not known yet."""
        stated = self.manifest.node.at("spec", "maxReplicaCount" if self.is_keda else "maxReplicas")
        return _KEDA_DEFAULT_MAXIMUM if self.is_keda and stated.is_absent() else stated.integer()


def autoscalers(resource: Resource) -> Iterator[Autoscaler]:
    """The autoscalers in a resource whose target is known."""
    for manifest in manifests(resource):
        if manifest.is_a("autoscaling", "HorizontalPodAutoscaler") or manifest.is_a("keda.sh", "ScaledObject"):
            target = manifest.node.at("spec", "scaleTargetRef")
            kind, name = target.at("kind"), target.at("name").text()
            if name is not None and not kind.is_unknown():
                yield Autoscaler(manifest, (manifest.namespace, kind.text() or _DEFAULT_TARGET_KIND, name))


def autoscaler_maxima(stack: Stack) -> ReplicaMaxima:
    """The largest maximum that any autoscaler of the stack has for each target."""
    maxima: dict[ObjectKey, int] = {}
    for autoscaler in (one for resource in stack.resources for one in autoscalers(resource)):
        maximum = autoscaler.maximum
        if maximum is not None:
            maxima[autoscaler.target] = max(maximum, maxima.get(autoscaler.target, 0))
    return maxima
