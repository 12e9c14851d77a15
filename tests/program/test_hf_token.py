"""A token in AWS Secrets Manager: as a file for what downloads, by a role that may read it and nothing else."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from components.checks import check
from components.settings import Settings
from tests.aws.conftest import account, environment, server  # noqa: F401
from tests.program.conftest import Recorder, stack_values
from tests.program.test_aws_stacks import EKS_OUTPUTS, only, region  # noqa: F401

Run = Callable[..., Recorder]
ARN = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:team/hf-AbC123"


@pytest.fixture(scope="module")
def recorder(region: object, run_program: Run) -> Recorder:  # noqa: ARG001, F811 - what the program asks
    """The stack inf2-prod with its token there and no model cache, so that its pods download and compile."""
    values = stack_values("inf2-prod")
    del values["modelCache"]
    values["serving"][0]["hfTokenSecretArn"] = ARN
    return run_program(values, outputs=EKS_OUTPUTS)


def test_the_provider_class_names_the_secret_its_region_and_pod_identity(recorder: Recorder) -> None:
    provider_class = only(recorder, ":SecretProviderClass")
    assert provider_class["apiVersion"] == "secrets-store.csi.x-k8s.io/v1"
    parameters = provider_class["spec"]["parameters"]
    assert (parameters["region"], parameters["usePodIdentity"]) == ("eu-west-1", "true")
    assert json.loads(parameters["objects"]) == [{"objectName": ARN, "objectAlias": "token"}]


def test_the_programs_find_the_file_and_the_server_has_none(recorder: Recorder) -> None:
    spec = only(recorder, ":Deployment")["spec"]["template"]["spec"]
    load, container = spec["initContainers"][0], spec["containers"][0]
    assert {"name": "HF_TOKEN_PATH", "value": "/hf-token/token"} in load["env"]
    assert {"name": "hf-token", "mountPath": "/hf-token", "readOnly": True} in load["volumeMounts"]
    assert "hf-token" not in repr(container)
    (volume,) = [one for one in spec["volumes"] if one["name"] == "hf-token"]
    assert volume["csi"]["volumeAttributes"] == {"secretProviderClass": "tinyllama-hf-token"}
    assert not [one for one in recorder.of_type("v1:Secret") if "hf-token" in one.name]


def test_the_pods_account_may_read_this_secret_and_do_nothing_else(recorder: Recorder) -> None:
    association = only(recorder, ":PodIdentityAssociation", "tinyllama")
    assert association["serviceAccount"] == "tinyllama-0a1b2c3d"
    assert association["clusterName"] == "neuron-serving-local"
    (statement,) = json.loads(only(recorder, ":RolePolicy", "tinyllama")["policy"])["Statement"]
    assert statement["Resource"] == ARN
    assert statement["Action"] == ["secretsmanager:GetSecretValue", "secretsmanager:DescribeSecret"]


@pytest.mark.usefixtures("region")
def test_with_a_model_cache_a_service_account_still_has_one_role_and_only_the_publishers_reads_the_secret(
    run_program: Run,
) -> None:
    values = stack_values("inf2-prod")
    values["serving"][0]["hfTokenSecretArn"] = ARN
    recorder = run_program(values, outputs=EKS_OUTPUTS)
    accounts = [one.inputs["serviceAccount"] for one in recorder.of_type(":PodIdentityAssociation")]
    assert len(accounts) == len(set(accounts))
    assert ARN in only(recorder, ":RolePolicy", "tinyllama-publisher")["policy"]
    assert ARN not in only(recorder, ":RolePolicy", "tinyllama")["policy"]


def test_driver_and_provider_run_on_the_tainted_nodes(recorder: Recorder) -> None:
    addon = only(recorder, ":Addon", "aws-secrets-store-csi-driver-provider")
    everywhere = [{"operator": "Exists"}]
    assert json.loads(addon["configurationValues"]) == {
        "tolerations": everywhere,
        "secrets-store-csi-driver": {"tolerations": everywhere},
    }


@pytest.mark.parametrize(
    ("serving", "fault"),
    [
        (
            {},
            "serving[0].hfTokenSecretArn: found one in a cluster of mode kubeconfig; allowed: mode create or existing",
        ),
        ({"hfTokenSecret": "team"}, "serving[0].hfTokenSecretArn: found one beside hfTokenSecret; allowed: one of"),
    ],
)
def test_it_needs_an_eks_cluster_by_name_and_no_other_token(
    local_stack: dict[str, Any], serving: dict[str, str], fault: str
) -> None:
    local_stack["serving"][0] |= {"hfTokenSecretArn": ARN, **serving}
    assert any(str(one).startswith(fault) for one in check(Settings.model_validate(local_stack)))
