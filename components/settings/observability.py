"""How a stack is watched."""

from typing import Literal

from pydantic import Field

from components.settings.shapes import DnsLabel, Section, WorkspaceArn

# The DaemonSet of AWS' documentation runs this one; its tags are of the Neuron tools, not of an SDK.
NEURON_MONITOR_IMAGE = "public.ecr.aws/neuron/neuron-monitor:1.3.0"
# Two weeks of a small cluster (about 50,000 series) take half of it, and a node's disk of 20 GiB has it to spare.
DEFAULT_STORAGE_GIB = 8


class ObservabilitySettings(Section):
    """What watches the model servers. Leave the section out, and nothing of it is there.

    `prometheus` installs the chart kube-prometheus-stack, or uses an operator that the cluster has: then only its
    custom resources and the dashboards are made. `exporters: existing` leaves kube-state-metrics and the node exporter
    to the cluster's own, which must show the labels that docs/observability.md lists. `storageClass` keeps the samples
    on a volume of `storageGib`; without one they lie on the node's disk and go with the pod. `grafanaAdminSecret` names
    a Secret with the keys admin-user and admin-password; without one a password is made up. `alertmanagerConfigSecret`
    names a Secret with alertmanager.yaml, which says whom alerts reach. `remoteWriteWorkspace` is a workspace of Amazon
    Managed Prometheus that gets all samples.
    """

    prometheus: Literal["install", "existing"] = "install"
    exporters: Literal["install", "existing"] = "install"
    retention_days: int = Field(default=15, ge=1)
    storage_gib: int = Field(default=DEFAULT_STORAGE_GIB, ge=1)
    storage_class: DnsLabel | None = None
    grafana_admin_secret: DnsLabel | None = None
    alertmanager_config_secret: DnsLabel | None = None
    neuron_monitor_image: str | None = Field(default=NEURON_MONITOR_IMAGE, min_length=1)
    remote_write_workspace: WorkspaceArn | None = None
    runbook_url: str = Field(default="docs/alerts.md", min_length=1)
