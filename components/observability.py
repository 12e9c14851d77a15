"""The observability layer: Prometheus and Grafana, what they scrape, the alerts and the dashboards."""

import json
import secrets

import pulumi
import pulumi_kubernetes as kubernetes
from pulumi_kubernetes.apiextensions import CustomResource

from components.addresses import MONITORING_NAMESPACE
from components.charts import install
from components.cluster import Cluster
from components.dependencies import needed
from components.monitoring.chart import (
    DASHBOARD_LABEL,
    PROMETHEUS_SERVICE_ACCOUNT,
    RELEASE,
    chart_values,
    remote_write_statements,
)
from components.monitoring.dashboards import dashboards
from components.monitoring.neuron_monitor import daemon_set_spec
from components.monitoring.rules import rule_groups
from components.monitoring.scraping import NEURON_MONITOR, chip_monitor_spec, server_monitor_spec
from components.plans import ObservabilityPlan

# Where the cluster has its own monitoring, nothing is put into its namespace.
OWN_NAMESPACE = "neuron-serving-monitoring"
GRAFANA_SECRET = "grafana-admin"  # noqa: S105 - the name of a Secret
_PASSWORD_BYTES = 24
_API = "monitoring.coreos.com/v1"


class Observability(pulumi.ComponentResource):
    """Watches the model servers of a stack.

    `chart` is what those wait for who need Prometheus; None where the cluster had it.
    """

    chart: pulumi.Resource | None

    def __init__(self, plan: ObservabilityPlan, cluster: Cluster, opts: pulumi.ResourceOptions | None = None) -> None:
        """Register the chart, then what its operator and Grafana read."""
        super().__init__("neuron-serving:index:Observability", "observability", {}, opts)
        installs = plan.settings.prometheus == "install"
        self._plan = plan
        self._cluster = cluster
        self._child = pulumi.ResourceOptions(parent=self, provider=cluster.provider)
        self._needed = needed(opts)
        self._namespace = MONITORING_NAMESPACE if installs else OWN_NAMESPACE
        namespace = kubernetes.core.v1.Namespace(
            self._namespace,
            metadata={"name": self._namespace},
            opts=pulumi.ResourceOptions.merge(self._child, self._needed),
        )
        self._child = self._after(namespace)
        self.chart = self._install_chart() if installs else None
        if self.chart is not None:
            # It brings the definitions of the custom resources.
            self._child = self._after(self.chart)
        if plan.servers:
            self._watch_servers()
        if plan.settings.neuron_monitor_image is not None:
            self._watch_chips(plan.settings.neuron_monitor_image)
        self.register_outputs({})

    def _after(self, *resources: pulumi.Resource) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions.merge(self._child, pulumi.ResourceOptions(depends_on=resources))

    def _install_chart(self) -> pulumi.Resource:
        settings = self._plan.settings
        before: list[pulumi.Resource] = []
        if settings.remote_write_workspace is not None:
            before += self._grant_remote_write(settings.remote_write_workspace)
        if settings.grafana_admin_secret is None:
            before.append(self._make_grafana_secret())
        values = chart_values(settings, settings.grafana_admin_secret or GRAFANA_SECRET)
        opts = pulumi.ResourceOptions.merge(self._after(*before), self._needed)
        return install(RELEASE, self._namespace, values, self._plan.charts, opts)

    def _make_grafana_secret(self) -> pulumi.Resource:
        """A password made up when the Secret is first made, and kept: what later runs make up is ignored."""
        data = {"admin-user": "admin", "admin-password": secrets.token_urlsafe(_PASSWORD_BYTES)}
        return kubernetes.core.v1.Secret(
            GRAFANA_SECRET,
            metadata={"name": GRAFANA_SECRET, "namespace": self._namespace},
            string_data=pulumi.Output.secret(data),
            # Both: the provider keeps what was given as stringData under data.
            opts=pulumi.ResourceOptions.merge(
                self._child, pulumi.ResourceOptions(ignore_changes=["data", "stringData"])
            ),
        )

    def _grant_remote_write(self, workspace_arn: str) -> list[pulumi.Resource]:
        # Imported here: pulumi_aws costs every run of a program about a second, also where nothing is on AWS.
        from components.pod_identity import grant

        return grant(
            "prometheus-remote-write",
            self._cluster.eks_name or "",
            self._namespace,
            PROMETHEUS_SERVICE_ACCOUNT,
            [remote_write_statements(workspace_arn)],
            self,
            self._needed,
        )

    def _watch_servers(self) -> None:
        groups = rule_groups(self._plan.servers, self._plan.settings.runbook_url)
        self._custom("PodMonitor", "model-servers", server_monitor_spec(self._plan.servers))
        self._custom("PrometheusRule", "model-servers", {"groups": groups})
        for name, dashboard in dashboards(self._plan.servers).items():
            self._show(name, dashboard)

    def _watch_chips(self, image: str) -> None:
        kubernetes.apps.v1.DaemonSet(
            NEURON_MONITOR,
            metadata={"name": NEURON_MONITOR, "namespace": self._namespace},
            spec=daemon_set_spec(image, self._plan.instance_types),
            opts=self._child,
        )
        self._custom("PodMonitor", NEURON_MONITOR, chip_monitor_spec(self._namespace))

    def _custom(self, kind: str, name: str, spec: dict[str, object]) -> None:
        """A custom resource of the Prometheus operator; the label is what releases of the chart look for by default."""
        CustomResource(
            f"{name}-{kind.lower()}",
            api_version=_API,
            kind=kind,
            metadata={
                "name": name,
                "namespace": self._namespace,
                "labels": {"release": RELEASE, "app.kubernetes.io/part-of": "neuron-serving"},
            },
            spec=spec,
            opts=self._child,
        )

    def _show(self, name: str, dashboard: dict[str, object]) -> None:
        """A dashboard, as a ConfigMap that the sidecar of Grafana picks up."""
        kubernetes.core.v1.ConfigMap(
            f"dashboard-{name}",
            metadata={
                "name": f"neuron-serving-{name}",
                "namespace": self._namespace,
                "labels": {DASHBOARD_LABEL: "1", "app.kubernetes.io/part-of": "neuron-serving"},
            },
            data={f"neuron-serving-{name}.json": json.dumps(dashboard, indent=1, sort_keys=True)},
            opts=self._child,
        )
