"""Bad stack files: each fault is one line with its path, and all of them come at once."""

from typing import Any

import pytest

from components.configuration import parse_settings
from components.faults import ConfigurationError
from tests.unit.configuration import GOOD, changed, encoded, lines

TOKEN = "hf_" + "x" * 34


def test_good_values_are_taken() -> None:
    settings = parse_settings(encoded(GOOD))
    assert settings.serving[0].model.tensor_parallel == 2


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"sevring": []},
            "sevring: found an unknown key; allowed: cluster, nodeGroups, serving, modelCache, accelerator, edge, "
            "observability, autoscaler, charts, quotas; "
            "fix: rename it to serving",
        ),
        (
            {"cluster.vpcCidr": "10.0.0.0/16"},
            "cluster.vpcCidr: found an unknown key; allowed: mode, kubeconfig, context; fix: remove it",
        ),
        (
            {"cluster.mode": "eksctl"},
            'cluster.mode: found "eksctl"; allowed: kubeconfig, existing, create, stack; fix: set one of these',
        ),
        (
            {"cluster.mode": "kubeconfg"},
            'cluster.mode: found "kubeconfg"; allowed: kubeconfig, existing, create, stack; fix: set kubeconfig',
        ),
        ({"serving.0.replicas": 0}, "serving[0].replicas: found 0; allowed: 1 or more; fix: raise it to 1"),
        (
            {"serving.0.replicas": "1"},
            'serving[0].replicas: found "1"; allowed: a valid integer; fix: write 1, without quotes',
        ),
        (
            {"serving.0.model.revision": "main"},
            'serving[0].model.revision: found "main"; '
            "allowed: a commit of the model's repository, 40 hexadecimal digits; fix: write it in that form",
        ),
        (
            {"serving.0.model.tensorParallel": 3},
            "serving[0].model.tensorParallel: found 3; allowed: 1, 2 (they divide the 2 NeuronCores of inf2.xlarge); "
            "fix: set 2",
        ),
        (
            {"serving.0.imageLine": "plugin-0.24"},
            "serving[0].imageLine: found plugin-0.24, which runs on trn2, trn2u and not on inf2.xlarge; "
            "allowed: v0-0.9.1, nxdi-0.13, nxdi-0.16; fix: set one of these, or move to a node group of another family",
        ),
        (
            {"serving.0.model.id": "Qwen/Qwen3-8B"},
            "serving[0].model: found Qwen/Qwen3-8B, which needs 48.0 GiB of host memory "
            "(about 3x its 16 GB checkpoint while it is sharded); allowed: 13.3 GiB on inf2.xlarge; "
            "fix: use inf2.8xlarge, the smallest type that fits",
        ),
        (
            {"serving.0.model.id": "some/model"},
            "serving[0].model.checkpointGb: found none for some/model, whose size is not known here; "
            "allowed: the size of the checkpoint's files in decimal gigabytes; fix: set checkpointGb",
        ),
        (
            {"serving.0.model.maxModelLen": 4096},
            "serving[0].model.maxModelLen: found 4096; allowed: 2048 or less, the context of "
            "TinyLlama/TinyLlama-1.1B-Chat-v1.0; fix: set 2048 at most",
        ),
        (
            {"serving.0.memoryGib": 4},
            "serving[0].memoryGib: found 4 for a model that peaks at 6.1 GiB while it loads; "
            "allowed: 10 or more; fix: leave memoryGib out: it is derived",
        ),
        (
            {"serving.0.replicas": 3},
            "serving[0].replicas: found 3 pods that ask for 3 chips in node group inferentia; "
            "allowed: 2 chips (2 x inf2.xlarge); fix: lower replicas or raise nodes of the node group",
        ),
        (
            {"serving.0.nodeGroup": "trainium"},
            "serving[0].nodeGroup: found trainium; allowed: inferentia; fix: name a group of nodeGroups",
        ),
        (
            {"serving.0.firstTokenSloSeconds": 2},
            "serving[0].firstTokenSloSeconds: found 2; allowed: a bound of vLLM's histogram: 0.001, 0.005, 0.01, 0.02, "
            "0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10; fix: set 2.5",
        ),
        (
            {"observability": {"prometheus": "existing", "storageClass": "gp3"}},
            "observability.storageClass: found gp3 with prometheus: existing; "
            "allowed: nothing: the Prometheus that exists has its own settings; "
            "fix: leave it out, or set prometheus: install",
        ),
        (
            {"observability": {"remoteWriteWorkspace": "arn:aws:aps:us-west-2:123456789012:workspace/ws-0a"}},
            "observability.remoteWriteWorkspace: found a workspace, in a cluster of mode kubeconfig; "
            "allowed: mode create or existing: a role is given to Prometheus by the cluster's EKS name; "
            "fix: leave it out, or change cluster.mode",
        ),
        (
            {
                "nodeGroups.0.instanceType": "trn2.3xlarge",
                "serving.0.imageLine": "plugin-0.24",
                "serving.0.model.shardedCheckpoint": True,
            },
            "serving[0].model.shardedCheckpoint: found true with imageLine plugin-0.24, "
            "which saves no sharded checkpoints; "
            "allowed: false, or true with v0-0.9.1 or nxdi-0.13 or nxdi-0.16; fix: leave it out",
        ),
        (
            {
                "nodeGroups.0.instanceType": "trn2.3xlarge",
                "serving.0.imageLine": "plugin-0.24",
                "serving.0.neuronConfig": {"save_sharded_checkpoint": True},
            },
            "serving[0].neuronConfig.save_sharded_checkpoint: found true; "
            "allowed: nothing: model.shardedCheckpoint decides; fix: leave it out",
        ),
        (
            {"serving.0.neuronConfig": {"save_sharded_checkpoint": True}},
            "serving[0].neuronConfig.save_sharded_checkpoint: found true; "
            "allowed: nothing: model.shardedCheckpoint decides; fix: set model.shardedCheckpoint: true in its place",
        ),
        (
            {"serving.0.neuronConfig": {"skip_sharding": True}},
            "serving[0].neuronConfig.skip_sharding: found true; "
            "allowed: nothing: model.shardedCheckpoint decides; fix: leave it out",
        ),
        ({"serving": []}, "serving: found an empty list; allowed: at least one entry; fix: add one"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_fault_is_one_line(changes: dict[str, Any], line: str) -> None:
    assert lines(changes) == [line]


def test_faults_of_shape_and_of_meaning_come_together() -> None:
    found = lines({"serving.0.model.id": "Qwen/Qwen3-4B", "serving.0.model.dtyp": "bfloat16", "serving.0.replicas": 0})
    assert {line.partition(":")[0] for line in found} == {
        "serving[0].model",
        "serving[0].model.dtyp",
        "serving[0].replicas",
    }


@pytest.mark.parametrize(
    ("changes", "paths"),
    [
        (
            {
                "serving.0.replicas": 0,
                "serving.0.model.maxModelLen": -5,
                "serving.0.model.revision": "main",
                "nodeGroups.0.instanceType": "inf2.mega",
            },
            {
                "serving[0].replicas",
                "serving[0].model.maxModelLen",
                "serving[0].model.revision",
                "nodeGroups[0].instanceType",
            },
        ),
        (
            {"nodeGroups.0.nodes": "two", "serving.0.imageLine": "nxdi-0.14", "serving.0.name": "Tiny_Llama"},
            {"nodeGroups[0].nodes", "serving[0].imageLine", "serving[0].name"},
        ),
        ({"serving.0.name": "Tiny_Llama", "serving.0.replicas": 5}, {"serving[0].name", "serving[0].replicas"}),
        (
            {"serving.0.model.dtype": "int4", "serving.0.imageLine": "x"},
            {"serving[0].model.dtype", "serving[0].imageLine"},
        ),
        (
            {"serving.0.model.shardedCheckpoint": "yes", "serving.0.imageLine": "x"},
            {"serving[0].model.shardedCheckpoint", "serving[0].imageLine"},
        ),
    ],
)
def test_a_faulty_value_does_not_hide_the_faults_of_others(changes: dict[str, Any], paths: set[str]) -> None:
    assert {line.partition(": ")[0] for line in lines(changes)} == paths


def test_a_missing_key_does_not_hide_the_faults_of_others() -> None:
    changes = {"serving.0.model.tensorParallel": 3, "nodeGroups.0.nodes": None, "serving.0.model.maxNumSeqs": None}
    with pytest.raises(ConfigurationError) as failure:
        parse_settings(encoded(changed(changes)))
    assert {fault.path for fault in failure.value.faults} == {
        "nodeGroups[0].nodes",
        "serving[0].model.maxNumSeqs",
        "serving[0].model.tensorParallel",
    }


def test_a_missing_key_is_named() -> None:
    values = changed({"serving.0.model.revision": None})
    with pytest.raises(ConfigurationError, match=r"^serving\[0\].model.revision: found nothing; "):
        parse_settings(encoded(values))


def test_a_value_that_is_no_mapping_says_which_keys_one_has() -> None:
    assert lines({"cluster": "eks"}) == [
        'cluster: found "eks"; allowed: a mapping with a mode: kubeconfig, existing, create, stack; '
        "fix: write its keys below it, indented"
    ]


def test_two_servers_of_one_name_are_refused() -> None:
    assert lines({"serving": GOOD["serving"] * 2}) == [
        "serving: found 2 entries named tinyllama; allowed: one entry a name; fix: rename all but one"
    ]


def test_a_token_in_plain_text_is_refused_and_not_repeated() -> None:
    (line,) = lines({"hfToken": TOKEN}, plain_text=["hfToken"])
    assert line.startswith("hfToken: found a value in plain text; allowed: a secret; fix: pulumi config set --secret")
    assert TOKEN not in line


@pytest.mark.parametrize(
    "path", ["serving.0.hfTokenSecret", "serving.0.name", "cluster.mode", "serving.0.model.revision"]
)
def test_a_token_in_the_wrong_field_is_not_repeated(path: str) -> None:
    assert not [line for line in lines({path: TOKEN}) if TOKEN in line]


def test_a_token_beside_an_existing_secret_is_refused() -> None:
    found = lines({"hfToken": TOKEN, "serving.0.hfTokenSecret": "team-token"})
    assert found == [
        "serving[0].hfTokenSecret: found team-token beside hfToken; allowed: one of the two; fix: drop one"
    ]
