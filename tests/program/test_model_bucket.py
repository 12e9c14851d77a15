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
    local_stack["modelCache"] = {
        "backend": "s3",
        "bucket": "vllm-models-cache-123456789012",
        "region": "us-west-2",
        "clusterName": "workshop",
    }
    return run_program(local_stack)


def only(recorder: Recorder, suffix: str) -> dict[str, Any]:
    (resource,) = recorder.of_type(suffix)
    return resource.inputs


def test_the_bucket_is_private_encrypted_and_versioned(on_s3: Recorder) -> None:
    block = only(on_s3, ":BucketPublicAccessBlock")
    assert [block[key] for key in sorted(block) if key != "bucket"] == [True] * 4
    assert only(on_s3, ":BucketVersioning")["versioningConfiguration"] == {"status": "Enabled"}
    (rule,) = only(on_s3, ":BucketServerSideEncryptionConfiguration")["rules"]
    assert rule["applyServerSideEncryptionByDefault"]["sseAlgorithm"] == "AES256"


def test_the_driver_may_create_objects_of_this_bucket_and_delete_none(on_s3: Recorder) -> None:
    policy = json.loads(only(on_s3, ":RolePolicy")["policy"])
    actions = {action for statement in policy["Statement"] for action in statement["Action"]}
    assert actions == {"s3:ListBucket", "s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload"}
    association = only(on_s3, ":PodIdentityAssociation")
    assert association["serviceAccount"] == "s3-csi-driver-sa"
    assert association["clusterName"] == "workshop"


def test_the_volume_is_the_bucket_through_mountpoint_without_overwrite_or_delete(on_s3: Recorder) -> None:
    spec = only(on_s3, ":PersistentVolume")["spec"]
    assert spec["csi"]["driver"] == "s3.csi.aws.com"
    assert spec["accessModes"] == ["ReadWriteMany"]
    assert spec["persistentVolumeReclaimPolicy"] == "Retain"
    assert not {"allow-overwrite", "allow-delete"} & set(spec["mountOptions"])


def test_old_versions_and_unfinished_uploads_end(on_s3: Recorder) -> None:
    (rule,) = only(on_s3, ":BucketLifecycleConfiguration")["rules"]
    assert rule["noncurrentVersionExpiration"]["noncurrentDays"] == 30
    assert rule["abortIncompleteMultipartUpload"]["daysAfterInitiation"] == 7
