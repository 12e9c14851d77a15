"""The whole job through the real engine: deploy, repeat, refuse."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engine.stack import Stack, make_stack
from tools.control_plane import ControlPlane
from tools.control_plane.api import Api

TOKEN = "hf_" + "t" * 34
# Breaks all four rules in the Deployment that the program registers, as a foreign program might.
FAULTS = f"""
import pulumi
def spoil(args):
    if args.type_ != "kubernetes:apps/v1:Deployment":
        return None
    spec = args.props["spec"]
    spec["strategy"] = {{"type": "RollingUpdate", "rollingUpdate": {{"maxSurge": 2, "maxUnavailable": 0}}}}
    server = spec["template"]["spec"]["containers"][0]
    del server["resources"]["limits"]["memory"]
    del server["startupProbe"]
    server["env"].append({{"name": "HF_TOKEN", "value": "{TOKEN}"}})
    return pulumi.ResourceTransformResult(args.props, args.opts)
pulumi.runtime.register_resource_transform(spoil)
"""


@pytest.fixture
def stack(control_plane: ControlPlane, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Stack]:
    """The stack `local` in a namespace of the test's own."""
    namespace = request.node.name.replace("_", "-")[:40].rstrip("-")
    made = make_stack(tmp_path / namespace, control_plane.kubeconfig, nodes=2)
    yield made
    made.change_main("")
    destroyed = made.destroy()
    assert destroyed.exit_code == 0, destroyed.output


def namespaces(plane: ControlPlane) -> set[str]:
    return {one["metadata"]["name"] for one in Api(plane.kubeconfig).get("/api/v1/namespaces")["items"]}


def test_up_makes_the_deployment_available_and_up_again_changes_nothing(
    stack: Stack, control_plane: ControlPlane
) -> None:
    first = stack.up()
    assert first.exit_code == 0, first.output
    assert "neuron-serving@v0.1.0" in first.output
    namespace = stack.values["serving"][0]["namespace"]
    (deployment,) = Api(control_plane.kubeconfig).get(f"/apis/apps/v1/namespaces/{namespace}/deployments")["items"]
    assert deployment["status"]["availableReplicas"] == 1
    again = stack.preview("--expect-no-changes")
    assert again.exit_code == 0, again.output


def test_an_update_leaves_the_replicas_to_what_scales_the_server(stack: Stack, control_plane: ControlPlane) -> None:
    stack.values["autoscaler"] = {"kind": "prometheus-adapter", "install": False}
    stack.values["serving"][0]["autoscaling"] = {"maxReplicas": 2}
    first = stack.up()
    assert first.exit_code == 0, first.output
    api = Api(control_plane.kubeconfig)
    namespace = stack.values["serving"][0]["namespace"]
    (deployment,) = api.get(f"/apis/apps/v1/namespaces/{namespace}/deployments")["items"]
    assert deployment["spec"]["replicas"] == 1
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/{deployment['metadata']['name']}"
    # As a scaler does it.
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": deployment["metadata"]["name"]}}
    api.apply(f"{path}/scale", {**scale, "spec": {"replicas": 2}})
    # A change of the Deployment itself, so that it is written and not only compared.
    stack.values["serving"][0]["longestRequestSeconds"] = 31
    again = stack.up()
    assert again.exit_code == 0, again.output
    # The autoscaler too: it goes down by one replica a drain.
    assert "2 updated" in again.output
    assert api.get(path)["spec"]["replicas"] == 2


def test_the_pack_refuses_all_four_faults_at_once_and_repeats_no_token(
    stack: Stack, control_plane: ControlPlane
) -> None:
    before = namespaces(control_plane)
    stack.change_main(FAULTS)
    refused = stack.up()
    assert refused.exit_code != 0
    for rule in ("memory-limits", "probes", "no-plaintext-hf-token", "rollout-capacity"):
        assert rule in refused.output, f"{rule} missing in\n{refused.output}"
    assert "server" in refused.output
    assert "tinyllama" in refused.output
    assert TOKEN not in refused.output
    assert namespaces(control_plane) == before, "a refusal creates nothing"


def test_a_token_is_in_no_output_in_no_config_map_and_encrypted_in_the_state(
    stack: Stack, control_plane: ControlPlane
) -> None:
    set_token = stack.run("config", "set", "--secret", "hfToken", TOKEN, "--stack", "test")
    assert set_token.exit_code == 0, set_token.output
    deployed = stack.up("--diff")
    assert deployed.exit_code == 0, deployed.output
    assert TOKEN not in deployed.output
    encoded = base64.b64encode(TOKEN.encode()).decode()
    state = stack.state()
    assert "Secret" in state
    assert TOKEN not in state
    assert encoded not in state
    namespace = stack.values["serving"][0]["namespace"]
    api = Api(control_plane.kubeconfig)
    assert TOKEN not in repr(api.get(f"/api/v1/namespaces/{namespace}/configmaps"))
    assert TOKEN not in repr(api.get(f"/apis/apps/v1/namespaces/{namespace}/deployments"))
    assert encoded in repr(api.get(f"/api/v1/namespaces/{namespace}/secrets"))


BAD_INPUTS = {
    "of shape and of meaning": (
        {"imagLine": "x", "replicas": 0, "imageLine": "plugin-0.24", "model.tensorParallel": 3},
        [
            "serving[0].imagLine: found an unknown key; ",
            "serving[0].replicas: found 0; ",
            "serving[0].imageLine: found plugin-0.24, which runs on trn2",
            "serving[0].model.tensorParallel: found 3; allowed: 1, 2",
        ],
    ),
    "longer than the model's context": (
        {"model.maxModelLen": 4096},
        ["serving[0].model.maxModelLen: found 4096; allowed: 2048 or less, the context of TinyLlama/TinyLlama"],
    ),
}


TOO_LARGE = {
    # (src) both were killed while they loaded.
    "Qwen/Qwen3-4B": (
        "trn1.2xlarge",
        "serving[0].model: found Qwen/Qwen3-4B, which needs 37.0 GiB of host memory (about 3x its 12 GB checkpoint "
        "while it is sharded); allowed: 29.4 GiB on trn1.2xlarge; fix: use inf2.8xlarge, the smallest type that fits",
        "inf2.8xlarge",
    ),
    "Qwen/Qwen3-8B": (
        "inf2.xlarge",
        "serving[0].model: found Qwen/Qwen3-8B, which needs 48.0 GiB of host memory (about 3x its 16 GB checkpoint "
        "while it is sharded); allowed: 13.3 GiB on inf2.xlarge; fix: use inf2.8xlarge, the smallest type that fits",
        "inf2.8xlarge",
    ),
}


@pytest.mark.parametrize("model", TOO_LARGE)
def test_a_model_larger_than_the_host_is_refused_at_preview_and_passes_on_the_type_that_it_names(
    control_plane: ControlPlane, tmp_path: Path, model: str
) -> None:
    small, refusal, large = TOO_LARGE[model]
    stack = make_stack(tmp_path / "too-large", control_plane.kubeconfig, nodes=2)
    stack.values["serving"][0]["model"]["id"] = model
    stack.values["nodeGroups"][0]["instanceType"] = small
    refused = stack.preview()
    assert refused.exit_code != 0
    assert refusal in refused.output
    stack.values["nodeGroups"][0]["instanceType"] = large
    passed = stack.preview()
    assert passed.exit_code == 0, passed.output


@pytest.mark.parametrize(("changes", "lines"), BAD_INPUTS.values(), ids=BAD_INPUTS.keys())
def test_bad_input_is_one_clear_line_a_fault_before_anything_is_created(
    control_plane: ControlPlane, tmp_path: Path, changes: dict[str, Any], lines: list[str]
) -> None:
    stack = make_stack(tmp_path / "bad-input", control_plane.kubeconfig, nodes=2)
    serving = stack.values["serving"][0]
    for path, value in changes.items():
        section = serving["model"] if path.startswith("model.") else serving
        section[path.rpartition(".")[2]] = value
    refused = stack.up()
    assert refused.exit_code != 0
    for line in lines:
        assert line in refused.output
    assert "Traceback" not in refused.output
    assert "bad-input" not in namespaces(control_plane)
    assert stack.resources() == []
