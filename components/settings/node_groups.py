"""Neuron nodes, and what the account may run."""

from typing import Literal

from pydantic import Field

from components.settings.shapes import ByNames, DnsLabel, ReservationId, Section, SubnetId
from neuron.quota import MAX_UNAVAILABLE_CEILING, Purchase, UpdateStrategy

# The root volume of the AMI's own snapshot.
MINIMUM_DISK_GIB = 20


class QuotasSettings(ByNames):
    """The account's quotas in vCPUs, under the keys that the policy pack's rule vcpu-quota takes too."""

    trn: int | None = Field(default=None, ge=0)
    inf: int | None = Field(default=None, ge=0)
    trn_spot: int | None = Field(default=None, ge=0)
    inf_spot: int | None = Field(default=None, ge=0)


class CreateSettings(Section):
    """How a node group is made and bought: by EKS (`managed`), or by Karpenter when pods wait for nodes.

    `amiRelease` pins the AMI, by version (1.36.2-20260625) or date (20260625); without it the one that EKS recommends
    now is taken. `minNodes`
    is how far an autoscaler may shrink the group, all of it by default. `MINIMAL` updates stop old nodes first and
    need no quota beyond the group's own; `DEFAULT` starts new ones first. Karpenter has no use for either.
    """

    provisioner: Literal["managed", "karpenter"] = "managed"
    ami_release: str | None = None
    min_nodes: int | None = Field(default=None, ge=0)
    purchase: Purchase = "on-demand"
    reservation_id: ReservationId | None = None
    disk_gib: int = Field(default=100, ge=MINIMUM_DISK_GIB)
    disk_throughput_mib_per_second: int = Field(default=600, ge=125, le=1000)
    update_strategy: UpdateStrategy = "MINIMAL"
    max_unavailable: int = Field(default=1, ge=1, le=MAX_UNAVAILABLE_CEILING)
    subnet_ids: tuple[SubnetId, ...] = Field(default=(), strict=False)


class NodeGroupSettings(Section):
    """Neuron nodes; `nodes` is the most that there may be. Without `create` the group exists already."""

    name: DnsLabel
    instance_type: str
    nodes: int = Field(ge=1, examples=[1000])
    create: CreateSettings | None = None
