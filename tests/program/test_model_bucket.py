"""The S3 backend of the model cache: what guards the bucket, and how pods reach it."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.program.conftest import Recorder

Run = Callable[..., Recorder]


@pytest.fixture
def on_s3(run_program: Run, local_stack: dict[str, Any]) -> Recorder:
    """The local stack with its cache in a bucket."""
    return run_on_s3(run_program, local_stack, {})


def run_on_s3(run_program: Run, stack: dict[str, Any], settings: dict[str, Any]) -> Recorder:
    """The program in a cluster that another stack made, with a model cache of these settings."""
    values = stack | {
        "aws:region": "us-west-2",
        "cluster": {"mode": "stack", "stack": "organization/neuron-serving/platform"},
        "modelCache": {"backend": "s3", **settings},
    }
    exported = {"cluster": {"name": "workshop", "kubeconfig": "{}"}}
    return run_program(values, outputs={"pulumi:pulumi:StackReference": {"outputs": exported}})


def only(recorder: Recorder, suffix: str) -> dict[str, Any]:
    (resource,) = recorder.of_type(suffix)
    return resource.inputs


def test_the_bucket_is_private_encrypted_and_versioned(on_s3: Recorder) -> None:
    block = only(on_s3, ":BucketPublicAccessBlock")
    assert [block[key] for key in sorted(block) if key != "bucket"] == [True] * 4
    assert only(on_s3, ":BucketVersioning")["versioningConfiguration"] == {"status": "Enabled"}
    (rule,) = only(on_s3, ":BucketServerSideEncryptionConfiguration")["rules"]
    assert rule["applyServerSideEncryptionByDefault"]["sseAlgorithm"] == "AES256"


def test_servers_may_load_models_and_the_job_may_publish_them_and_nobody_may_delete(on_s3: Recorder) -> None:
    allowed = {}
    for policy in on_s3.of_type(":RolePolicy"):
        statements = json.loads(policy.inputs["policy"])["Statement"]
        allowed[policy.name] = {action for statement in statements for action in statement["Action"]}
    load = {"s3:ListBucket", "s3:GetObject"}
    assert allowed == {
        "tinyllama": load,
        "tinyllama-publisher": load | {"s3:PutObject", "s3:AbortMultipartUpload"},
    }
    roles = {one.inputs["serviceAccount"]: one.inputs for one in on_s3.of_type(":PodIdentityAssociation")}
    server = only(on_s3, ":Deployment")["spec"]["template"]["spec"]["serviceAccountName"]
    publisher = only(on_s3, ":Job")["spec"]["template"]["spec"]["serviceAccountName"]
    assert roles[server]["roleArn"].endswith(":tinyllama")
    assert roles[publisher]["roleArn"].endswith(":tinyllama-publisher")
    assert {one["clusterName"] for one in roles.values()} == {"workshop"}


def test_a_bucket_that_exists_is_used_and_left_as_it_is(run_program: Run, local_stack: dict[str, Any]) -> None:
    recorder = run_on_s3(run_program, local_stack, {"createBucket": False, "bucket": "shared-models"})
    assert not [one for one in recorder.resources if one.type.startswith("aws:s3/")]
    assert only(recorder, ":PersistentVolume")["spec"]["csi"]["volumeAttributes"]["bucketName"] == "shared-models"
    (statement, *_) = json.loads(recorder.of_type(":RolePolicy")[0].inputs["policy"])["Statement"]
    assert statement["Resource"] == "arn:aws:s3:::shared-models"


def test_the_volume_is_the_bucket_through_mountpoint_without_overwrite_or_delete(on_s3: Recorder) -> None:
    spec = only(on_s3, ":PersistentVolume")["spec"]
    assert spec["csi"]["driver"] == "s3.csi.aws.com"
    assert spec["csi"]["volumeAttributes"]["authenticationSource"] == "pod"
    assert spec["accessModes"] == ["ReadWriteMany"]
    assert spec["persistentVolumeReclaimPolicy"] == "Retain"
    assert not {"allow-overwrite", "allow-delete"} & set(spec["mountOptions"])


def test_old_versions_and_unfinished_uploads_end(on_s3: Recorder) -> None:
    (rule,) = only(on_s3, ":BucketLifecycleConfiguration")["rules"]
    assert rule["noncurrentVersionExpiration"]["noncurrentDays"] == 30
    assert rule["abortIncompleteMultipartUpload"]["daysAfterInitiation"] == 7
