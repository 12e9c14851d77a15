"""The disk of a node against what system, images and pods take of it."""

import pytest

from neuron.disk import PodOnDisk, disk_gib, needed_disk_gib
from neuron.model import storage_gib
from tests.unit.builders import model

SMALL = PodOnDisk(chips=1, storage_gib=15, image="nxdi-0.13")
LARGE = PodOnDisk(chips=1, storage_gib=45, image="nxdi-0.16")


@pytest.mark.parametrize(
    ("pods", "chips", "needed"),
    [
        ([], 1, 23),
        ([SMALL], 1, 66),
        ([SMALL, SMALL], 1, 66),
        ([SMALL, LARGE], 1, 99),
        ([SMALL, SMALL], 6, 83),
        ([SMALL, LARGE], 6, 143),
    ],
    ids=[
        "no pod: the system alone",
        "a pod and its image",
        "as many pods as there are chips",
        "the larger of two, when only one has a chip",
        "one image for both pods",
        "an image for each of them",
    ],
)
def test_a_node_holds_system_images_and_pods_and_a_tenth_stays_free(
    pods: list[PodOnDisk], chips: int, needed: int
) -> None:
    assert needed_disk_gib(pods, chips) == needed


def test_a_sharded_checkpoint_is_the_weights_once_more() -> None:
    assert storage_gib(model(checkpoint_gb=16)) == 42
    assert storage_gib(model(checkpoint_gb=16, sharded_checkpoint=True)) == 58


def test_images_and_pods_are_on_the_instance_store_where_there_is_one() -> None:
    assert disk_gib(100, 0) == 100
    assert disk_gib(20, 474) == 441
