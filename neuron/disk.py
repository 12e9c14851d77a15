"""The disk of a node: what system, images and pods take of the volume that holds them all."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

# The size of the AMI's own snapshot; what the system has filled of it is less.
SYSTEM_GIB = 20
# (src) 7.9 GiB as it is pulled. How large it gets unpacked is not measured; three times is a cautious guess.
IMAGE_GIB = 24
# The kubelet evicts pods when less than a tenth of the volume is free (its default, nodefs.available).
USABLE_SHARE = 0.9
_GIB_PER_GB = 1000**3 / 1024**3


@dataclass(frozen=True)
class PodOnDisk:
    """A pod that a node may have to hold: the chips that it takes, the disk that it asks for, the image of it."""

    chips: int
    storage_gib: int
    image: str


def needed_disk_gib(pods: Iterable[PodOnDisk], chips: int) -> int:
    """The volume of a node with these chips that may get the largest of the pods, as many as its chips allow."""
    held: list[PodOnDisk] = []
    for pod in sorted(pods, key=lambda one: one.storage_gib / one.chips, reverse=True):
        if pod.chips <= chips:
            held.append(pod)
            chips -= pod.chips
    images_gib = IMAGE_GIB * len({pod.image for pod in held})
    return math.ceil((SYSTEM_GIB + images_gib + sum(pod.storage_gib for pod in held)) / USABLE_SHARE)


def disk_gib(root_volume_gib: int, nvme_gb: int) -> int:
    """The volume that holds images and pods: the instance store where there is one, else the root volume."""
    return math.floor(nvme_gb * _GIB_PER_GB) if nvme_gb else root_volume_gib
