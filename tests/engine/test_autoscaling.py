"""Prometheus, KEDA and the HorizontalPodAutoscaler controller, all real, before servers under load.

Load, scraping and the controller's period of 15 s are in real time. The scale-down window and period, and the durations
of alerts, are those of the product divided by WINDOW_FACTOR. Pods start as fast as the control plane simulates them.
"""

import json
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import yaml

from components.autoscaling import ScalerPlan, scaled_object_spec
from components.monitoring.observed import ObservedServer
from components.monitoring.rules import rule_groups
from components.settings.autoscaling import AutoscalerSettings
from neuron.images import IMAGE_LINES
from neuron.instances import CHIP_RESOURCE
from neuron.metrics import SCRAPE_INTERVAL_SECONDS, SERVER_LABEL
from neuron.rollout import derive_drain
from neuron.scaling import derive_scaling
from stand_ins.vllm.application import Settings
from tests.edge.programs import LOOPBACK, free_port, running
from tests.engine.conftest import node_groups, wait_until
from tests.engine.fleet import Fleet
from tests.engine.keda import running_keda
from tests.unit.builders import model
from tools import toolchain
from tools.control_plane import ControlPlane
from tools.control_plane.api import Api, ApiError
from tools.control_plane.nodes import Object

NAMESPACE, NAME = "default", "tinyllama"
MAXIMUM = 3
# (src) an autoscaler on the queue reacted within 25 s under 32 clients.
CLIENTS, REACTION_SECONDS = 32, 25
CONTROLLER_SECONDS = 15
WINDOW_FACTOR = 25
PATIENCE_SECONDS = 60
ABSENT_ALERT = "VLLMScalerMetricAbsent"


@dataclass(frozen=True)
class Stage:
    """One server's Deployment that KEDA scales, its load, and the Prometheus that can be taken away."""

    plane: ControlPlane
    api: Api
    fleet: Fleet
    prometheus: ExitStack
    prometheus_command: list[str | Path]
    prometheus_port: int
    directory: Path

    def start_prometheus(self) -> None:
        log = self.directory / "prometheus.log"
        self.prometheus.enter_context(running(self.prometheus_command, self.prometheus_port, log))

    @property
    def deployment(self) -> Object:
        return self.api.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{NAME}")

    @property
    def replicas(self) -> int:
        return int(self.deployment["spec"]["replicas"])

    @property
    def ready(self) -> int:
        return int(self.deployment["status"].get("readyReplicas", 0))

    def condition(self, kind: str) -> str:
        """The status of one of the ScaledObject's conditions."""
        scaled = self.api.get(f"/apis/keda.sh/v1alpha1/namespaces/{NAMESPACE}/scaledobjects/{NAME}")
        conditions = {one["type"]: one["status"] for one in scaled.get("status", {}).get("conditions", [])}
        return str(conditions.get(kind))

    def firing_alerts(self) -> set[str]:
        """What Prometheus would send to somebody."""
        url = f"http://{LOOPBACK}:{self.prometheus_port}/api/v1/alerts"
        with urllib.request.urlopen(url, timeout=5) as answer:
            alerts = json.load(answer)["data"]["alerts"]
        return {one["labels"]["alertname"] for one in alerts if one["state"] == "firing"}

    def pending(self) -> list[Object]:
        pods = self.api.get(f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]
        return [pod for pod in pods if pod["status"]["phase"] == "Pending"]

    def stays(self, replicas: int, seconds: float) -> None:
        """The number of replicas is this, and remains so."""
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            assert self.replicas == replicas
            time.sleep(0.5)


def ready_replicas(api: Api) -> int:
    try:
        deployment = api.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{NAME}")
    except ApiError:
        return 0
    return int(deployment["status"].get("readyReplicas", 0))


def write_prometheus_configuration(directory: Path, ports: list[int]) -> Path:
    """One target a replica, with the labels that the PodMonitor gives its series."""
    labels = {"namespace": NAMESPACE, SERVER_LABEL: NAME}
    targets = [
        {"targets": [f"{LOOPBACK}:{port}"], "labels": {**labels, "pod": f"{NAME}-{number}"}}
        for number, port in enumerate(ports)
    ]
    rules = directory / "rules.yaml"
    rules.write_text(yaml.safe_dump({"groups": alert_groups()}))
    configuration = {
        "rule_files": [str(rules)],
        "global": {"scrape_interval": f"{SCRAPE_INTERVAL_SECONDS}s"},
        "scrape_configs": [{"job_name": "vllm", "static_configs": targets}],
    }
    file = directory / "prometheus.yaml"
    file.write_text(yaml.safe_dump(configuration))
    return file


def alert_groups() -> list[Object]:
    """The rules of the observability layer, evaluated every second and with their durations divided as the windows."""
    server = ObservedServer(NAME, NAMESPACE, 4, 1.0, pod_usd_per_hour=None, publishes=True)
    groups = rule_groups([server], "runbook")
    for group in groups:
        group["interval"] = "1s"
        for rule in group["rules"]:
            if "for" in rule:
                rule["for"] = f"{round(int(rule['for'].removesuffix('s')) / WINDOW_FACTOR)}s"
    return groups


def deployment() -> Object:
    """A Deployment as the serving layer leaves it: without replicas; its pods take a chip each."""
    labels = {"app.kubernetes.io/instance": NAME}
    container = {"name": "server", "image": "vllm", "resources": {"limits": {CHIP_RESOURCE: "1"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def scaled_object(prometheus_port: int, window_factor: int) -> Object:
    """The ScaledObject that the autoscaling layer renders, with shorter windows."""
    scaling = derive_scaling(1, MAXIMUM, model(), derive_drain(IMAGE_LINES["nxdi-0.13"], 30))
    scaling = replace(
        scaling,
        scale_down_window_seconds=round(scaling.scale_down_window_seconds / window_factor),
        scale_down_period_seconds=round(scaling.scale_down_period_seconds / window_factor),
    )
    autoscaler = AutoscalerSettings.model_validate({"prometheusUrl": f"http://{LOOPBACK}:{prometheus_port}"})
    spec = scaled_object_spec(ScalerPlan(NAME, NAMESPACE, scaling, autoscaler), NAME)
    return {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": NAME}, "spec": spec}


@contextmanager
def stage(directory: Path, window_factor: int = WINDOW_FACTOR) -> Iterator[Stage]:
    """Two nodes, a server that KEDA scales, and Prometheus; one replica serves."""
    plane = ControlPlane(directory / "control-plane", node_groups({"inf2.xlarge": 2}), crds=("keda",))
    ports = [free_port() for _ in range(MAXIMUM)]
    prometheus_port = free_port()
    configuration = write_prometheus_configuration(directory, ports)
    prometheus = toolchain.ensure(["prometheus"]).path("prometheus")
    storage = f"--storage.tsdb.path={directory / 'prometheus'}"
    command: list[str | Path] = [prometheus, f"--config.file={configuration}", storage]
    command.append(f"--web.listen-address={LOOPBACK}:{prometheus_port}")
    with ExitStack() as stack:
        stack.callback(plane.stop)
        plane.start()
        api = Api(plane.kubeconfig)
        keda = directory / "keda"
        keda.mkdir()
        stack.enter_context(running_keda(plane, keda))
        fleet = Fleet(Settings(line="nxdi-0.13"), ports, lambda: ready_replicas(api))
        stack.enter_context(fleet.running())
        taken_away = stack.enter_context(ExitStack())
        made = Stage(plane, api, fleet, taken_away, command, prometheus_port, directory)
        made.start_prometheus()
        api.apply(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{NAME}", deployment())
        wait_until(lambda: made.ready == 1, PATIENCE_SECONDS)
        path = f"/apis/keda.sh/v1alpha1/namespaces/{NAMESPACE}/scaledobjects/{NAME}"
        api.apply(path, scaled_object(prometheus_port, window_factor))
        wait_until(lambda: made.condition("Ready") == "True" and has_metrics(api), PATIENCE_SECONDS)
        yield made


def has_metrics(api: Api) -> bool:
    """Whether the controller has read all that it was told to read."""
    try:
        found = api.get(f"/apis/autoscaling/v2/namespaces/{NAMESPACE}/horizontalpodautoscalers/{NAME}")
    except ApiError:
        return False
    conditions = {one["type"]: one["status"] for one in found.get("status", {}).get("conditions", [])}
    return conditions.get("ScalingActive") == "True"


def test_a_backlog_brings_replicas_that_stay_survive_a_blind_scaler_and_go_when_they_are_not_needed(
    tmp_path: Path,
) -> None:
    with stage(tmp_path) as running_stage:
        running_stage.fleet.clients = CLIENTS
        reacted = wait_until(lambda: running_stage.replicas == MAXIMUM, PATIENCE_SECONDS)
        assert reacted <= REACTION_SECONDS

        # Two nodes hold two pods; the third waits for a node, and gets it when there is one.
        wait_until(lambda: running_stage.ready == 2, PATIENCE_SECONDS)
        (waiting,) = running_stage.pending()
        (unscheduled,) = (one for one in waiting["status"]["conditions"] if one["type"] == "PodScheduled")
        assert (unscheduled["status"], unscheduled["reason"]) == ("False", "Unschedulable")
        assert CHIP_RESOURCE in unscheduled["message"]
        replace(running_stage.plane, node_groups=node_groups({"inf2.xlarge": 3})).start()
        wait_until(lambda: running_stage.ready == MAXIMUM, PATIENCE_SECONDS)

        # Under load, for longer than the window and two looks of the controller.
        running_stage.stays(MAXIMUM, 2 * CONTROLLER_SECONDS)

        # Series that vanish are no empty queue: the alert says so, and the scaler holds what there is.
        running_stage.fleet.clients = 0
        running_stage.fleet.answers = False
        wait_until(lambda: ABSENT_ALERT in running_stage.firing_alerts(), PATIENCE_SECONDS)
        wait_until(lambda: running_stage.condition("Fallback") == "True", 2 * PATIENCE_SECONDS)
        # Nor does it see anything without Prometheus.
        running_stage.prometheus.close()
        running_stage.stays(MAXIMUM, 2 * CONTROLLER_SECONDS)

        # It sees again that nobody waits.
        running_stage.fleet.answers = True
        running_stage.start_prometheus()
        wait_until(lambda: running_stage.replicas == 1, 2 * PATIENCE_SECONDS)


@pytest.mark.long
def test_a_load_that_rises_and_falls_every_minute_does_not_make_it_flap(tmp_path: Path) -> None:
    """Ten minutes in real time, with the product's own windows."""
    period_seconds, teeth = 60, 10
    with stage(tmp_path, window_factor=1) as running_stage:
        replaced = replace(running_stage.plane, node_groups=node_groups({"inf2.xlarge": MAXIMUM}))
        replaced.start()
        seen = [running_stage.replicas]
        ends = time.monotonic() + period_seconds * teeth
        while (left := ends - time.monotonic()) > 0:
            risen = 1 - left % period_seconds / period_seconds
            running_stage.fleet.clients = round(CLIENTS * risen)
            seen.append(running_stage.replicas)
            time.sleep(1)
        assert max(seen) == MAXIMUM
        # Up in the first tooth, and never down: each lull is shorter than a replica takes to come back.
        assert seen == sorted(seen)
