"""The observability layer in the stack `local`, under mocks: with the chart, and beside a Prometheus that exists."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from components.addresses import PROMETHEUS_URL
from components.monitoring.alerts import ALERTS
from components.monitoring.chart import chart_values, remote_write_statements
from components.settings.observability import ObservabilitySettings
from neuron.metrics import SERVER_LABEL
from tests.program.conftest import Recorder

Run = Callable[..., Recorder]
WORKSPACE = "arn:aws:aps:us-west-2:123456789012:workspace/ws-0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f"


def inputs(recorder: Recorder, kind: str, name: str | None = None) -> dict[str, Any]:
    (found,) = [one for one in recorder.of_type(kind) if name in (None, one.name)]
    return found.inputs


def observability(**values: object) -> ObservabilitySettings:
    """The section of a stack file with these values."""
    return ObservabilitySettings.model_validate(values)


@pytest.fixture
def installed(run_program: Run, local_stack: dict[str, Any]) -> Recorder:
    """The stack with the chart."""
    local_stack["observability"] = {}
    return run_program(local_stack)


def test_the_chart_is_named_so_that_others_find_its_prometheus(installed: Recorder) -> None:
    chart = inputs(installed, "helm.sh/v4:Chart", "kube-prometheus-stack")
    release, namespace = chart["values"]["fullnameOverride"], chart["namespace"]
    assert f"http://{release}-prometheus.{namespace}.svc:9090" == PROMETHEUS_URL
    assert chart["version"] == "88.5.3"


def test_what_eks_hides_is_not_scraped_and_nothing_is_there_twice(installed: Recorder) -> None:
    values = inputs(installed, "helm.sh/v4:Chart")["values"]
    for component in ("kubeControllerManager", "kubeEtcd", "kubeScheduler", "kubeProxy"):
        assert values[component] == {"enabled": False}
    beside = chart_values(observability(exporters="existing"), "secret")
    assert beside["kubeStateMetrics"] == beside["nodeExporter"] == {"enabled": False}


def test_grafana_has_no_password_that_anybody_knows(installed: Recorder) -> None:
    secret = inputs(installed, ":Secret", "grafana-admin")
    password = secret["stringData"]["value"]["admin-password"]
    assert len(password) >= 32
    holders = [one.name for one in installed.resources if password in repr(one.inputs)]
    assert holders == ["grafana-admin"]
    values = inputs(installed, "helm.sh/v4:Chart")["values"]["grafana"]
    assert values["admin"]["existingSecret"] == "grafana-admin"
    assert "adminPassword" not in values


def test_a_secret_that_exists_is_used_and_none_is_made(run_program: Run, local_stack: dict[str, Any]) -> None:
    local_stack["observability"] = {"grafanaAdminSecret": "team-grafana", "alertmanagerConfigSecret": "routes"}
    recorder = run_program(local_stack)
    assert not recorder.of_type(":Secret")
    values = inputs(recorder, "helm.sh/v4:Chart")["values"]
    assert values["grafana"]["admin"]["existingSecret"] == "team-grafana"
    alertmanager = values["alertmanager"]["alertmanagerSpec"]
    assert (alertmanager["useExistingSecret"], alertmanager["configSecret"]) == (True, "routes")


def test_samples_lie_on_a_volume_where_there_is_a_class_and_never_fill_a_disk() -> None:
    spec = chart_values(observability(storageClass="gp3", storageGib=100), "s")["prometheus"]["prometheusSpec"]
    claim = spec["storageSpec"]["volumeClaimTemplate"]["spec"]
    assert (claim["storageClassName"], claim["resources"]["requests"]["storage"]) == ("gp3", "100Gi")
    assert spec["retentionSize"] == "90GiB"
    without = chart_values(observability(), "s")["prometheus"]["prometheusSpec"]
    assert without["storageSpec"] == {"emptyDir": {"sizeLimit": "8Gi"}}


def test_samples_go_to_a_workspace_signed_by_the_pods_role() -> None:
    settings = observability(remoteWriteWorkspace=WORKSPACE)
    (remote,) = chart_values(settings, "s")["prometheus"]["prometheusSpec"]["remoteWrite"]
    workspace = WORKSPACE.rpartition("/")[2]
    host = "https://aps-workspaces.us-west-2.amazonaws.com"
    assert remote == {"url": f"{host}/workspaces/{workspace}/api/v1/remote_write", "sigv4": {"region": "us-west-2"}}
    assert remote_write_statements(WORKSPACE)[0]["Resource"] == WORKSPACE


def test_every_server_is_scraped_under_its_name(installed: Recorder) -> None:
    monitor = inputs(installed, ":PodMonitor", "model-servers-podmonitor")["spec"]
    pod = inputs(installed, ":Deployment")["spec"]["template"]
    selected = monitor["selector"]["matchLabels"]
    assert selected.items() <= pod["metadata"]["labels"].items()
    assert monitor["namespaceSelector"]["matchNames"] == ["vllm"]
    (endpoint,) = monitor["podMetricsEndpoints"]
    ports = {port["name"] for port in pod["spec"]["containers"][0]["ports"]}
    assert endpoint["port"] in ports
    assert SERVER_LABEL in {one["targetLabel"] for one in endpoint["relabelings"]}


def test_publishers_are_not_scraped(installed: Recorder) -> None:
    selected = inputs(installed, ":PodMonitor", "model-servers-podmonitor")["spec"]["selector"]["matchLabels"]
    job = inputs(installed, ":Job")["spec"]["template"]["metadata"]["labels"]
    assert not selected.items() <= job.items()


def test_every_alert_is_in_the_rule_with_a_link_to_its_page(installed: Recorder) -> None:
    groups = inputs(installed, ":PrometheusRule")["spec"]["groups"]
    alerts = {rule["alert"]: rule for group in groups for rule in group["rules"] if "alert" in rule}
    assert list(alerts) == [alert.name for alert in ALERTS]
    assert alerts["VLLMQueueBacklog"]["annotations"]["runbook_url"] == "docs/alerts.md#vllmqueuebacklog"


def test_the_chips_are_watched_where_they_are(installed: Recorder) -> None:
    pod = inputs(installed, ":DaemonSet")["spec"]["template"]["spec"]
    terms = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert terms[0]["matchExpressions"][0]["values"] == ["inf2.xlarge"]
    (container,) = pod["containers"]
    assert container["resources"]["limits"] == {"memory": "256Mi"}
    monitor = inputs(installed, ":PodMonitor", "neuron-monitor-podmonitor")["spec"]
    assert monitor["podMetricsEndpoints"][0]["port"] == container["ports"][0]["name"]


def test_dashboards_are_config_maps_that_grafana_looks_for(installed: Recorder) -> None:
    maps = [one.inputs for one in installed.of_type(":ConfigMap") if one.name.startswith("dashboard-")]
    sidecar = inputs(installed, "helm.sh/v4:Chart")["values"]["grafana"]["sidecar"]["dashboards"]
    assert len(maps) == 3
    for each in maps:
        assert each["metadata"]["labels"][sidecar["label"]] == sidecar["labelValue"]
        (text,) = each["data"].values()
        assert json.loads(text)["panels"]


def test_beside_a_prometheus_that_exists_nothing_is_installed_and_its_namespace_is_left_alone(
    run_program: Run, local_stack: dict[str, Any]
) -> None:
    recorder = run_program(local_stack)
    assert not recorder.of_type("helm.sh/v4:Chart")
    assert not recorder.of_type(":Secret")
    namespaces = {one.inputs["metadata"]["name"] for one in recorder.of_type("core/v1:Namespace")}
    assert namespaces == {"vllm", "neuron-serving-monitoring"}
