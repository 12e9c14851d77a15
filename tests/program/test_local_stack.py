"""The program, run under mocks with the stack file `local`: what it registers, and what it refuses."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulumi
import pytest

from tests.program.conftest import Recorder

Run = Callable[..., Recorder]


def pod_spec(recorder: Recorder) -> dict[str, Any]:
    (deployment,) = recorder.of_type(":Deployment")
    spec: dict[str, Any] = deployment.inputs["spec"]["template"]["spec"]
    return spec


def test_the_program_registers_every_layer(run_program: Run, local_stack: dict[str, Any]) -> None:
    types = {one.type for one in run_program(local_stack).resources}
    assert types == {
        "neuron-serving:index:Cluster",
        "neuron-serving:index:ExistingNodeGroup",
        "neuron-serving:index:ModelCache",
        "neuron-serving:index:Namespace",
        "neuron-serving:index:Observability",
        "neuron-serving:index:Serving",
        "pulumi:providers:kubernetes",
        "kubernetes:core/v1:Namespace",
        "kubernetes:core/v1:ServiceAccount",
        "kubernetes:core/v1:ConfigMap",
        "kubernetes:core/v1:PersistentVolume",
        "kubernetes:core/v1:PersistentVolumeClaim",
        "kubernetes:core/v1:Service",
        "kubernetes:batch/v1:Job",
        "kubernetes:monitoring.coreos.com/v1:PodMonitor",
        "kubernetes:monitoring.coreos.com/v1:PrometheusRule",
        "kubernetes:apps/v1:DaemonSet",
        "kubernetes:apps/v1:Deployment",
        "kubernetes:policy/v1:PodDisruptionBudget",
        "kubernetes:networking.k8s.io/v1:NetworkPolicy",
    }


def test_a_spare_node_gives_a_surge_and_none_gives_none(run_program: Run, local_stack: dict[str, Any]) -> None:
    def update() -> object:
        (deployment,) = run_program(local_stack).of_type(":Deployment")
        return deployment.inputs["spec"]["strategy"]["rollingUpdate"]

    assert update() == {"maxSurge": 1, "maxUnavailable": 0}
    local_stack["nodeGroups"][0]["nodes"] = 1
    assert update() == {"maxSurge": 0, "maxUnavailable": 1}


def test_every_container_has_one_memory_figure_and_asks_for_the_chip(
    run_program: Run, local_stack: dict[str, Any]
) -> None:
    spec = pod_spec(run_program(local_stack))
    for container in spec["initContainers"] + spec["containers"]:
        resources = container["resources"]
        assert resources["limits"]["memory"] == resources["requests"]["memory"] == "10Gi"
        assert resources["limits"]["aws.amazon.com/neuron"] == "1"


def test_the_server_compiles_and_serves_with_the_same_arguments_and_is_process_one(
    run_program: Run, local_stack: dict[str, Any]
) -> None:
    local_stack["serving"][0]["neuronConfig"] = {"enable_bucketing": False}
    spec = pod_spec(run_program(local_stack))
    load, server = spec["initContainers"][0], spec["containers"][0]
    shared = load["args"][load["args"].index("--") + 1 :]
    assert server["args"][: len(shared)] == shared
    assert '--additional-config={"override_neuron_config":{"enable_bucketing":false}}' in shared
    assert server["command"] == ["python3", "-m", "vllm.entrypoints.openai.api_server"]


def test_a_sharded_checkpoint_is_asked_for_when_compiling_and_serving_and_takes_more_disk(
    run_program: Run, local_stack: dict[str, Any]
) -> None:
    local_stack["serving"][0]["model"]["shardedCheckpoint"] = True
    recorder = run_program(local_stack)
    (job,) = recorder.of_type(":Job")
    spec, publisher = pod_spec(recorder), job.inputs["spec"]["template"]["spec"]["containers"][0]
    for container in (publisher, *spec["initContainers"], *spec["containers"]):
        assert '--additional-config={"override_neuron_config":{"save_sharded_checkpoint":true}}' in container["args"]
        assert container["resources"]["requests"]["ephemeral-storage"] == "17Gi"


def test_the_await_outlasts_the_progress_deadline_which_outlasts_the_probes(
    run_program: Run, local_stack: dict[str, Any]
) -> None:
    recorder = run_program(local_stack)
    (deployment,) = recorder.of_type(":Deployment")
    startup = pod_spec(recorder)["containers"][0]["startupProbe"]
    budget_seconds = startup["periodSeconds"] * startup["failureThreshold"]
    assert 240 <= budget_seconds < deployment.inputs["spec"]["progressDeadlineSeconds"]


def test_a_token_stands_in_the_secret_alone_and_stays_secret(run_program: Run, local_stack: dict[str, Any]) -> None:
    token = "hf_" + "a" * 34
    recorder = run_program(local_stack, token=token)
    holders = [one for one in recorder.resources if token in repr(one.inputs)]
    assert [one.type for one in holders] == ["kubernetes:core/v1:Secret"]
    # Pulumi marks a secret value with this signature on the wire; the mocks pass it on as it is.
    marked = holders[0].inputs["stringData"]
    assert "1b47061264138c4ac30d75fd1eb44270" in repr(marked)
    variable = {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "vllm-hf-token-0a1b2c3d", "key": "token"}}}
    (job,) = recorder.of_type(":Job")
    assert variable in job.inputs["spec"]["template"]["spec"]["containers"][0]["env"]
    assert "HF_TOKEN" not in repr(pod_spec(recorder)), "a server finds its model published and needs no token"


def test_an_existing_secret_is_referred_to_and_none_is_made(run_program: Run, local_stack: dict[str, Any]) -> None:
    local_stack["serving"][0] |= {"hfTokenSecret": "team-token", "onMiss": "compile"}
    recorder = run_program(local_stack)
    assert not recorder.of_type(":Secret")
    variables = {one["name"]: one for one in pod_spec(recorder)["initContainers"][0]["env"]}
    assert variables["HF_TOKEN"]["valueFrom"]["secretKeyRef"]["name"] == "team-token"


def test_bad_input_registers_nothing_and_reads_as_one_line_a_fault(
    run_program: Run, local_stack: dict[str, Any]
) -> None:
    local_stack["serving"][0]["replicas"] = 0
    local_stack["serving"][0]["modle"] = {}
    with pytest.raises(pulumi.RunError) as failure:
        run_program(local_stack)
    heading, *lines = str(failure.value).splitlines()
    assert heading == "2 faults in the configuration of stack local; nothing was changed"
    assert sorted(line.partition(":")[0] for line in lines) == ["serving[0].modle", "serving[0].replicas"]


def test_a_free_chip_publishes_first_and_its_pods_refuse_to_compile(
    run_program: Run, local_stack: dict[str, Any]
) -> None:
    recorder = run_program(local_stack)
    (job,) = recorder.of_type(":Job")
    publisher = job.inputs["spec"]["template"]["spec"]
    load = pod_spec(recorder)["initContainers"][0]
    assert "--on-miss=fail" in load["args"]
    assert [one["readOnly"] for one in load["volumeMounts"] if one["name"] == "model-cache"] == [True]
    mounts = publisher["containers"][0]["volumeMounts"]
    assert [one["readOnly"] for one in mounts if one["name"] == "model-cache"] == [False]
    (deployment,) = recorder.of_type(":Deployment")
    labels = job.inputs["spec"]["template"]["metadata"]["labels"]
    selected = deployment.inputs["spec"]["selector"]["matchLabels"]
    assert not selected.items() <= labels.items(), "a publisher is not an endpoint"


@pytest.mark.parametrize("change", ["no spare node", "no cache"])
def test_without_a_chip_or_a_cache_to_publish_to_pods_compile_for_themselves(
    run_program: Run, local_stack: dict[str, Any], change: str
) -> None:
    if change == "no cache":
        del local_stack["modelCache"]
    else:
        local_stack["nodeGroups"][0]["nodes"] = 1
    recorder = run_program(local_stack)
    assert not recorder.of_type(":Job")
    assert "--on-miss=compile" in pod_spec(recorder)["initContainers"][0]["args"]


def test_the_programs_of_the_config_map_run_as_mounted(
    run_program: Run, local_stack: dict[str, Any], tmp_path: Path
) -> None:
    recorder = run_program(local_stack)
    (config_map,) = [one for one in recorder.of_type(":ConfigMap") if not one.name.startswith("dashboard-")]
    (volume,) = [one for one in pod_spec(recorder)["volumes"] if one["name"] == "programs"]
    for item in volume["configMap"]["items"]:
        file = tmp_path / "programs" / item["path"]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(config_map.inputs["data"][item["key"]])
    load = pod_spec(recorder)["initContainers"][0]
    arguments = [one.replace("/programs", str(tmp_path / "programs")) for one in load["args"]]
    arguments = [one.replace("--cache=/model-cache", f"--cache={tmp_path}") for one in arguments]
    arguments = [one.replace("/model/", f"{tmp_path}/model/") for one in arguments]
    arguments = [one.replace("--local=/model", f"--local={tmp_path}/model") for one in arguments]
    log = tmp_path / "termination-log"
    ended = subprocess.run(
        [sys.executable, *load["command"][1:], f"--termination-log={log}", *arguments],
        cwd=tmp_path / "programs",
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1, ended.stderr
    assert "is not published; nothing of this model is" in log.read_text()


def test_a_server_of_the_plugin_line_that_finds_no_graph_fails_instead_of_compiling(
    run_program: Run, local_stack: dict[str, Any]
) -> None:
    local_stack["nodeGroups"][0]["instanceType"] = "trn2.3xlarge"
    local_stack["serving"][0]["imageLine"] = "plugin-0.24"
    server = pod_spec(run_program(local_stack))["containers"][0]
    assert {"name": "VLLM_NEURON_DISABLE_WARMUP_COMPILE", "value": "1"} in server["env"]
    assert "--shutdown-timeout=30" in server["args"]


def test_a_server_of_the_nxdi_lines_has_the_compilers_cache_and_no_network(
    run_program: Run, local_stack: dict[str, Any]
) -> None:
    server = pod_spec(run_program(local_stack))["containers"][0]
    variables = {one["name"]: one["value"] for one in server["env"]}
    assert variables == {
        "NEURON_COMPILED_ARTIFACTS": "/model/artifacts",
        "NEURON_COMPILE_CACHE_URL": "/model/artifacts",
        "HF_HUB_OFFLINE": "1",
    }
