"""The table of instance types against EC2, over real HTTP: moto has what EC2 stated."""

from dataclasses import replace

import pytest

from components.lookups.aws import Aws, AwsError
from components.lookups.instances import instance_type_differences
from neuron.instances import INSTANCE_TYPES, InstanceType, instance_type


@pytest.mark.parametrize("instance", INSTANCE_TYPES.values(), ids=INSTANCE_TYPES.keys())
def test_the_table_says_what_ec2_states(aws: Aws, instance: InstanceType) -> None:
    assert instance_type_differences(aws, instance) == ()


def test_a_wrong_fact_is_found(aws: Aws) -> None:
    wrong = replace(instance_type("trn1.2xlarge"), chips=2, device_memory_gib=64, nvme_gb=0)
    assert [str(one) for one in instance_type_differences(aws, wrong)] == [
        "trn1.2xlarge: EC2 states instance store in GB 474, neuron.instances has 0",
        "trn1.2xlarge: EC2 states Neuron chips 1, neuron.instances has 2",
        "trn1.2xlarge: EC2 states cores of all chips 2, neuron.instances has 4",
        "trn1.2xlarge: EC2 states Neuron memory in GiB 32, neuron.instances has 64",
    ]


def test_a_type_that_ec2_does_not_know_is_told_by_its_code(aws: Aws) -> None:
    with pytest.raises(AwsError) as error:
        instance_type_differences(aws, replace(instance_type("trn1.2xlarge"), name="trn9.large"))
    assert error.value.code == "InvalidInstanceType"
