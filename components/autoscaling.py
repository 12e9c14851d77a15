"""The autoscaling layer: the provider of external metrics, and what scales each model server by them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from components.addresses import ADAPTER_NAMESPACE, KEDA_NAMESPACE
from components.charts import install
from components.dependencies import needed
from components.settings.autoscaling import AutoscalerSettings
from components.settings.charts import ChartsSettings
from neuron.metrics import SERVER_LABEL, WAITING, of_server
from neuron.scaling import SIGNALS, Scaling, Schedule, Signal, Target

POLLING_SECONDS = 15
# Three polls without an answer: one that was lost is none.
FALLBACK_FAILURES = 3


@dataclass(frozen=True)
class AutoscalerPlan:
    """The provider of external metrics, and where its chart comes from."""

    settings: AutoscalerSettings
    charts: ChartsSettings


@dataclass(frozen=True)
class ScalerPlan:
    """What scales one model server."""

    name: str
    namespace: str
    scaling: Scaling
    autoscaler: AutoscalerSettings


class Autoscaler(pulumi.ComponentResource):
    """KEDA or prometheus-adapter: the one program of a cluster that answers for external metrics."""

    def __init__(
        self, plan: AutoscalerPlan, provider: kubernetes.Provider, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """Register the chart in a namespace of its own, under the name that it is known by."""
        super().__init__("neuron-serving:index:Autoscaler", "autoscaler", {}, opts)
        settings = plan.settings
        name, values = (
            (KEDA_NAMESPACE, keda_values())
            if settings.kind == "keda"
            else (ADAPTER_NAMESPACE, adapter_values(settings.prometheus_url))
        )
        child = pulumi.ResourceOptions.merge(pulumi.ResourceOptions(parent=self, provider=provider), needed(opts))
        namespace = kubernetes.core.v1.Namespace(name, metadata={"name": name}, opts=child)
        in_namespace = pulumi.ResourceOptions(depends_on=[namespace])
        install(settings.kind, name, values, plan.charts, pulumi.ResourceOptions.merge(child, in_namespace))
        self.register_outputs({})


class ServerScaler(pulumi.ComponentResource):
    """What sets the replicas of one model server: a ScaledObject of KEDA, or a HorizontalPodAutoscaler."""

    def __init__(
        self,
        plan: ScalerPlan,
        deployment: pulumi.Input[str],
        provider: kubernetes.Provider,
        after: Sequence[pulumi.Resource] = (),
    ) -> None:
        """Register it for the Deployment of that name, when `after` is there: whatever knows its kind."""
        super().__init__("neuron-serving:index:ServerScaler", plan.name, {}, None)
        child = pulumi.ResourceOptions(parent=self, provider=provider, depends_on=list(after))
        metadata = {"name": plan.name, "namespace": plan.namespace}
        if plan.autoscaler.kind == "keda":
            kubernetes.apiextensions.CustomResource(
                plan.name,
                api_version="keda.sh/v1alpha1",
                kind="ScaledObject",
                metadata=metadata,
                spec=scaled_object_spec(plan, deployment),
                opts=child,
            )
        else:
            kubernetes.autoscaling.v2.HorizontalPodAutoscaler(
                plan.name, metadata=metadata, spec=pod_autoscaler_spec(plan, deployment), opts=child
            )
        pulumi.log.info(plan.scaling.forecast, self)
        self.register_outputs({})


def scaled_object_spec(plan: ScalerPlan, deployment: pulumi.Input[str]) -> dict[str, Any]:
    """The spec of KEDA's ScaledObject.

    Series that vanish are an error, not an empty queue; after some of them the replicas stay as they are, and never
    fall below the minimum. There is no scaling to zero: a first request would wait for a cold start.
    """
    scaling = plan.scaling
    return {
        "scaleTargetRef": {"name": deployment},
        "pollingInterval": POLLING_SECONDS,
        "minReplicaCount": scaling.minimum,
        "maxReplicaCount": scaling.maximum,
        "fallback": {
            "failureThreshold": FALLBACK_FAILURES,
            "replicas": scaling.minimum,
            "behavior": "currentReplicasIfHigher",
        },
        "advanced": {"horizontalPodAutoscalerConfig": {"name": plan.name, "behavior": behavior(scaling)}},
        "triggers": [
            *(_prometheus_trigger(target, plan) for target in scaling.targets),
            *(_cron_trigger(schedule) for schedule in scaling.schedule),
        ],
    }


def pod_autoscaler_spec(plan: ScalerPlan, deployment: pulumi.Input[str]) -> dict[str, Any]:
    """The spec of a HorizontalPodAutoscaler on the external metrics that prometheus-adapter serves.

    It holds the replicas while a metric is missing, by itself.
    """
    scaling = plan.scaling
    return {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment},
        "minReplicas": scaling.minimum,
        "maxReplicas": scaling.maximum,
        "behavior": behavior(scaling),
        "metrics": [_external_metric(target, plan) for target in scaling.targets],
    }


def behavior(scaling: Scaling) -> dict[str, Any]:
    """How fast a HorizontalPodAutoscaler follows its metrics, KEDA's as well."""
    return {
        "scaleUp": {
            "stabilizationWindowSeconds": 0,
            "policies": [{"type": "Pods", "value": scaling.maximum, "periodSeconds": POLLING_SECONDS}],
        },
        "scaleDown": {
            "stabilizationWindowSeconds": scaling.scale_down_window_seconds,
            "policies": [{"type": "Pods", "value": 1, "periodSeconds": scaling.scale_down_period_seconds}],
        },
    }


def keda_values() -> dict[str, Any]:
    """Values of KEDA's chart: two of each, because a scaler that is down is not noticed until there is load."""
    return {"operator": {"replicaCount": 2}, "metricsServer": {"replicaCount": 2}}


def adapter_values(prometheus_url: str) -> dict[str, Any]:
    """Values of prometheus-adapter's chart: the external metrics of model servers, and none of its own choice."""
    address, _, port = prometheus_url.rpartition(":")
    return {
        "prometheus": {"url": address, "port": int(port)},
        "replicas": 2,
        "resources": {"requests": {"cpu": "50m", "memory": "256Mi"}, "limits": {"memory": "256Mi"}},
        "rules": {"default": False, "external": [_adapter_rule(signal) for signal in SIGNALS]},
    }


def _prometheus_trigger(target: Target, plan: ScalerPlan) -> dict[str, Any]:
    return {
        "type": "prometheus",
        "name": target.signal.name,
        "metricType": "AverageValue",
        "metadata": {
            "serverAddress": plan.autoscaler.prometheus_url,
            "query": target.signal.query(of_server(plan.namespace, plan.name)),
            "threshold": f"{target.per_replica:g}",
            "ignoreNullValues": "false",
        },
    }


def _cron_trigger(schedule: Schedule) -> dict[str, Any]:
    return {
        "type": "cron",
        "metadata": {
            "timezone": schedule.time_zone,
            "start": schedule.start,
            "end": schedule.end,
            "desiredReplicas": str(schedule.replicas),
        },
    }


def _external_metric(target: Target, plan: ScalerPlan) -> dict[str, Any]:
    labels = {SERVER_LABEL: plan.name}
    metric = {"name": target.signal.metric, "selector": {"matchLabels": labels}}
    average = {"type": "AverageValue", "averageValue": f"{target.per_replica:g}"}
    return {"type": "External", "external": {"metric": metric, "target": average}}


def _adapter_rule(signal: Signal) -> dict[str, Any]:
    """The adapter puts namespace and labels of the metric that is asked for into the place of its template."""
    return {
        "seriesQuery": f'{{__name__="{WAITING}",{SERVER_LABEL}!=""}}',
        "resources": {"overrides": {"namespace": {"resource": "namespace"}}},
        "name": {"as": signal.metric},
        "metricsQuery": signal.query("<<.LabelMatchers>>"),
    }
