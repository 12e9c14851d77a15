"""Values of the chart kube-prometheus-stack. What a key may be is recorded in tests/program/chart_values."""

from typing import Any

from components.settings.observability import ObservabilitySettings
from components.statements import Statement, allow

# Its services and accounts are named after the release; components.addresses relies on it.
RELEASE = "kube-prometheus-stack"
PROMETHEUS_SERVICE_ACCOUNT = f"{RELEASE}-prometheus"
DASHBOARD_LABEL = "grafana_dashboard"
# kube-state-metrics shows no label unless told to; rules and dashboards join by these.
SHOWN_LABELS = (
    "pods=[app.kubernetes.io/name,app.kubernetes.io/instance]",
    "deployments=[app.kubernetes.io/name,app.kubernetes.io/instance]",
    "nodes=[node.kubernetes.io/instance-type]",
)
# EKS runs these where no pod can reach them; each would be an alert for ever.
_OUT_OF_REACH = ("kubeControllerManager", "kubeEtcd", "kubeScheduler", "kubeProxy")
# Of the volume, before Prometheus drops its oldest samples.
_USABLE_SHARE = 0.9


def chart_values(settings: ObservabilitySettings, grafana_secret: str) -> dict[str, Any]:
    """The values for a stack's settings; `grafana_secret` holds the user and password of Grafana's administrator."""
    exporters = settings.exporters == "install"
    return {
        "fullnameOverride": RELEASE,
        **{component: {"enabled": False} for component in _OUT_OF_REACH},
        "kubeStateMetrics": {"enabled": exporters},
        "nodeExporter": {"enabled": exporters},
        "kube-state-metrics": {"metricLabelsAllowlist": list(SHOWN_LABELS), "resources": _memory("256Mi")},
        "prometheus-node-exporter": {"resources": _memory("64Mi")},
        "prometheusOperator": _operator(),
        "grafana": _grafana(grafana_secret),
        "alertmanager": _alertmanager(settings.alertmanager_config_secret),
        "prometheus": {"prometheusSpec": _prometheus(settings)},
    }


def _operator() -> dict[str, Any]:
    """Without its webhook, whose certificate the chart makes in hooks: Pulumi does not run those in their order."""
    return {
        "admissionWebhooks": {"enabled": False},
        "tls": {"enabled": False},
        "resources": _memory("256Mi"),
        "prometheusConfigReloader": {"resources": _memory("64Mi")},
    }


def _grafana(secret: str) -> dict[str, Any]:
    dashboards = {"enabled": True, "label": DASHBOARD_LABEL, "labelValue": "1", "searchNamespace": "ALL"}
    return {
        "resources": _memory("512Mi"),
        # A pod that Helm runs to test a release, without a memory limit.
        "testFramework": {"enabled": False},
        "admin": {"existingSecret": secret, "userKey": "admin-user", "passwordKey": "admin-password"},
        # Dashboards come as ConfigMaps from any namespace.
        "sidecar": {"resources": _memory("256Mi"), "dashboards": dashboards},
    }


def _alertmanager(config_secret: str | None) -> dict[str, Any]:
    """The chart's own configuration sends nothing anywhere; a Secret of the cluster's owner says where to."""
    own = {} if config_secret is None else {"useExistingSecret": True, "configSecret": config_secret}
    return {"enabled": True, "alertmanagerSpec": {"resources": _memory("128Mi"), **own}}


def _prometheus(settings: ObservabilitySettings) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "resources": {"requests": {"cpu": "500m"}, **_memory("2Gi")},
        "retention": f"{settings.retention_days}d",
        "retentionSize": f"{int(settings.storage_gib * _USABLE_SHARE)}GiB",
        # Monitors and rules of this program are found, and those of others, whatever their labels.
        "podMonitorSelectorNilUsesHelmValues": False,
        "serviceMonitorSelectorNilUsesHelmValues": False,
        "ruleSelectorNilUsesHelmValues": False,
        "storageSpec": _storage(settings.storage_class, settings.storage_gib),
    }
    if settings.remote_write_workspace is not None:
        spec["remoteWrite"] = [remote_write(settings.remote_write_workspace)]
    return spec


def _memory(limit: str) -> dict[str, Any]:
    """The chart limits the memory of none of its containers, which the policy memory-limits refuses."""
    return {"limits": {"memory": limit}}


def _storage(storage_class: str | None, storage_gib: int) -> dict[str, Any]:
    size = f"{storage_gib}Gi"
    if storage_class is None:
        return {"emptyDir": {"sizeLimit": size}}
    claim = {
        "storageClassName": storage_class,
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": size}},
    }
    return {"volumeClaimTemplate": {"spec": claim}}


def remote_write(workspace_arn: str) -> dict[str, Any]:
    """Where all samples go beside the local disk; requests are signed with the pod's own identity."""
    _, _, _, region, _, resource = workspace_arn.split(":")
    host = f"https://aps-workspaces.{region}.amazonaws.com"
    return {"url": f"{host}/workspaces/{resource.rpartition('/')[2]}/api/v1/remote_write", "sigv4": {"region": region}}


def remote_write_statements(workspace_arn: str) -> list[Statement]:
    """What the role of Prometheus' service account may do."""
    return [allow(["aps:RemoteWrite"], workspace_arn)]
