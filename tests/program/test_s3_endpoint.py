"""The way to S3 of a VPC made here, limited to the model cache's bucket where the stack file says so."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from components.checks import check
from components.settings import Settings
from tests.aws.conftest import account, environment, server  # noqa: F401
from tests.program.conftest import Recorder, stack_values
from tests.program.test_aws_stacks import EKS_OUTPUTS, region  # noqa: F401

Run = Callable[..., Recorder]


@pytest.mark.parametrize("restricted", [True, False])
def test_the_vpcs_endpoint_can_be_limited_to_the_bucket_and_what_nodes_read(
    region: object,  # noqa: ARG001, F811 - what the program asks
    run_program: Run,
    restricted: bool,
) -> None:
    values = stack_values("inf2-prod")
    values["modelCache"] = {
        "backend": "s3",
        "bucket": "models",
        "restrictEndpoint": restricted,
    }
    policies = run_program(values, outputs=EKS_OUTPUTS).of_type(":VpcEndpointPolicy")
    if not restricted:
        assert not policies
        return
    (policy,) = policies
    assert policy.inputs["vpcEndpointId"] == "cluster-s3-id"
    models, nodes = json.loads(policy.inputs["policy"])["Statement"]
    assert models["Resource"] == ["arn:aws:s3:::models", "arn:aws:s3:::models/*"]
    assert nodes["Action"] == "s3:GetObject"
    assert nodes["Resource"][0] == "arn:aws:s3:::prod-us-west-2-starport-layer-bucket/*"


def test_an_endpoint_that_others_made_is_not_limited_from_here(local_stack: dict[str, Any]) -> None:
    local_stack["modelCache"]["restrictEndpoint"] = True
    (fault,) = check(Settings.model_validate(local_stack))
    assert str(fault).startswith("modelCache.restrictEndpoint: found true, without a bucket in a VPC made here")
