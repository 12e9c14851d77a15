"""User data against files that a person has read, and against the schema and the reader that nodeadm has."""

from dataclasses import replace
from email import message_from_string
from pathlib import Path

import pytest
import yaml

from neuron.instances import INSTANCE_TYPES, InstanceType, instance_type
from neuron.user_data import user_data

GOLDEN = Path(__file__).parent / "golden" / "user_data"
# gp3 as it comes, and as a large image wants it.
DEFAULT_THROUGHPUT = 125
HIGH_THROUGHPUT = 1000


@pytest.mark.parametrize(
    ("name", "throughput"),
    [
        ("trn1.2xlarge", DEFAULT_THROUGHPUT),
        ("inf2.xlarge", HIGH_THROUGHPUT),
    ],
)
def test_user_data_is_the_golden_file(name: str, throughput: int) -> None:
    golden = (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")
    assert user_data(instance_type(name), throughput) == golden


@pytest.mark.parametrize("instance", INSTANCE_TYPES.values(), ids=INSTANCE_TYPES.keys())
def test_any_type_gives_one_node_config_with_known_fields(instance: InstanceType) -> None:
    text = user_data(instance, HIGH_THROUGHPUT)
    assert text is not None
    document = message_from_string(text)
    assert document.get_content_type() == "multipart/mixed"
    _, part = document.walk()
    assert part.get_content_type() == "application/node.eks.aws"
    node_config = yaml.safe_load(str(part.get_payload()))
    assert (node_config["apiVersion"], node_config["kind"]) == ("node.eks.aws/v1alpha1", "NodeConfig")
    assert node_config["spec"].get("instance", {}) == (
        {"localStorage": {"strategy": "RAID0"}} if instance.nvme_gb else {}
    )
    assert node_config["spec"]["featureGates"] == {"FastImagePull": True}


def test_a_slow_root_volume_without_instance_store_leaves_nodeadm_to_its_defaults() -> None:
    assert user_data(instance_type("inf2.xlarge"), 599) is None
    assert user_data(instance_type("inf2.xlarge"), 600) is not None


@pytest.mark.parametrize("small", [{"vcpus": 2}, {"host_memory_gib": 6}])
def test_fast_image_pull_is_not_asked_of_an_instance_that_ignores_it(small: dict[str, int]) -> None:
    instance = replace(instance_type("trn1.2xlarge"), **small)  # type: ignore[arg-type]
    text = user_data(instance, HIGH_THROUGHPUT)
    assert text is not None
    assert "RAID0" in text
    assert "FastImagePull" not in text
