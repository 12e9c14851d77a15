"""From settings and what AWS says to plans: cluster, zones, add-on versions, AMI releases and subnets.

Nothing is made here, and all faults that the look-ups find come at once.
"""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from components.faults import ConfigurationError, Fault
from components.lookups import zones
from components.lookups.addons import addon_version
from components.lookups.ami import pinned_ami, recommended_ami
from components.lookups.aws import Aws
from components.lookups.clusters import EksCluster, eks_cluster
from components.lookups.reservations import reservation_zone_id
from components.lookups.zones import Subnet
from components.platform_checks import driver_faults, image_lines_on, kube_scheduler_faults
from components.settings import Settings
from components.settings.cluster import CLOUDWATCH_ADDON, SECRETS_STORE_ADDON, CreatedCluster, ExistingCluster
from components.settings.node_groups import CreateSettings, NodeGroupSettings
from neuron.ami import AmiRelease
from neuron.instances import InstanceType, instance_type

# Zones of a VPC made here: a third raises the chance of capacity, EKS asks for two.
VPC_ZONES = 3
DEFAULT_VERSION = "default"

_Asked = ParamSpec("_Asked")
_Found = TypeVar("_Found")


@dataclass(frozen=True)
class NodeGroupPlan:
    """A node group to make.

    `zone_ids` are zones that offer the type; `subnet_ids` lie in them and are empty where the VPC is made here.
    """

    name: str
    instance: InstanceType
    nodes: int
    create: CreateSettings
    release: AmiRelease
    zone_ids: tuple[str, ...]
    subnet_ids: tuple[str, ...]


@dataclass(frozen=True)
class Platform:
    """What AWS said. `cluster` is the one that exists, None where it is made here.

    `vpc_id` is that of the given subnets; `zone_ids` are those of a VPC made here.
    `addons` maps the EKS add-ons to install to their versions.
    """

    region: str
    kubernetes_version: str
    cluster: EksCluster | None
    vpc_id: str | None
    zone_ids: tuple[str, ...]
    addons: dict[str, str]
    node_groups: tuple[NodeGroupPlan, ...]

    @property
    def managed_groups(self) -> tuple[NodeGroupPlan, ...]:
        """The node groups that EKS manages."""
        return tuple(plan for plan in self.node_groups if plan.create.provisioner == "managed")

    @property
    def karpenter_groups(self) -> tuple[NodeGroupPlan, ...]:
        """The node groups whose nodes Karpenter makes."""
        return tuple(plan for plan in self.node_groups if plan.create.provisioner == "karpenter")


# For a stack that makes nothing on AWS.
NOTHING = Platform(region="", kubernetes_version="", cluster=None, vpc_id=None, zone_ids=(), addons={}, node_groups=())


class _Faults:
    """Collects the faults of several look-ups."""

    def __init__(self) -> None:
        self.found: list[Fault] = []

    def of(self, ask: Callable[_Asked, _Found], *asked: _Asked.args, **named: _Asked.kwargs) -> _Found | None:
        """The answer to a question, or None where asking found faults."""
        try:
            return ask(*asked, **named)
        except ConfigurationError as error:
            self.found.extend(error.faults)
            return None

    def answer(self) -> None:
        """Raise what was found."""
        if self.found:
            raise ConfigurationError(self.found)


def look_up(settings: Settings, aws: Aws) -> Platform:
    """Ask AWS about a stack on EKS; ConfigurationError with every fault, AwsError where AWS gave no answer."""
    cluster = settings.cluster
    if not isinstance(cluster, ExistingCluster | CreatedCluster):
        raise ValueError(f"a cluster of mode {cluster.mode} is not looked up")
    existing: EksCluster | None = None
    if isinstance(cluster, ExistingCluster):
        existing = eks_cluster(aws, "cluster.name", cluster.name)
        version = existing.version
    else:
        version = cluster.version
    faults = _Faults()
    faults.found.extend(kube_scheduler_faults(settings, version))
    wanted = wanted_addons(cluster, secrets_store=any(one.hf_token_secret_arn for one in settings.serving))
    addons = {name: faults.of(_addon_version, aws, name, version, pin) for name, pin in wanted.items()}
    candidates = faults.of(_candidates, cluster, existing, aws) or ()
    groups = [
        faults.of(_node_group, path, group, version, candidates, settings, aws)
        for path, group in _created_groups(settings)
    ]
    faults.answer()
    plans = tuple(plan for plan in groups if plan is not None)
    return Platform(
        region=aws.region,
        kubernetes_version=version,
        cluster=existing,
        vpc_id=candidates[0].vpc_id if candidates else None,
        zone_ids=()
        if candidates
        else vpc_zone_ids([plan.zone_ids for plan in plans], zones.zone_ids_for_clusters(aws)),
        addons={name: found for name, found in addons.items() if found is not None},
        node_groups=plans,
    )


def wanted_addons(cluster: ExistingCluster | CreatedCluster, *, secrets_store: bool = False) -> dict[str, str]:
    """The add-ons to install, by version or `default`: all on a cluster made here, the stated ones on another.

    Of all, that for secrets only where `secrets_store` says that a server needs it, and that of CloudWatch never.
    """
    stated = cluster.addons.stated()
    if isinstance(cluster, ExistingCluster):
        return stated
    unasked = {CLOUDWATCH_ADDON} | (set() if secrets_store else {SECRETS_STORE_ADDON})
    known = [name for name in cluster.addons.model_dump(by_alias=True) if name not in unasked]
    return dict.fromkeys(known, DEFAULT_VERSION) | stated


def vpc_zone_ids(offering: Sequence[Collection[str]], usable: Sequence[str]) -> tuple[str, ...]:
    """The zones for a new VPC: those that offer most of the node groups' types first, at least one for each type.

    `offering` has the zones of each node group's type, `usable` those that take a control plane.
    """
    count = Counter(zone for zone_ids in offering for zone in zone_ids)
    ranked = sorted({*usable, *count}, key=lambda zone: (-count[zone], zone not in usable, zone))
    chosen = ranked[:VPC_ZONES]
    for zone_ids in offering:
        if not set(zone_ids) & set(chosen):
            chosen.append(min(zone_ids))
    return tuple(chosen)


def _created_groups(settings: Settings) -> list[tuple[str, NodeGroupSettings]]:
    groups = enumerate(settings.node_groups)
    return [(f"nodeGroups[{index}]", group) for index, group in groups if group.create is not None]


def _addon_version(aws: Aws, name: str, kubernetes_version: str, pin: str) -> str:
    wanted = None if pin == DEFAULT_VERSION else pin
    return addon_version(aws, f"cluster.addons.{name}", name, kubernetes_version, wanted).version


def _candidates(cluster: ExistingCluster | CreatedCluster, existing: EksCluster | None, aws: Aws) -> tuple[Subnet, ...]:
    """The subnets that nodes may go to; none where the VPC is made here."""
    if existing is not None:
        return zones.subnets(aws, "cluster.name", existing.subnet_ids)
    if isinstance(cluster, CreatedCluster) and cluster.subnet_ids:
        return zones.subnets(aws, "cluster.subnetIds", cluster.subnet_ids)
    return ()


def _node_group(
    path: str,
    group: NodeGroupSettings,
    kubernetes_version: str,
    candidates: tuple[Subnet, ...],
    settings: Settings,
    aws: Aws,
) -> NodeGroupPlan:
    create = group.create or CreateSettings()
    faults = _Faults()
    release = faults.of(_release, f"{path}.create.amiRelease", group, kubernetes_version, settings, aws)
    zone_ids = faults.of(_zone_ids, path, group, create, aws)
    subnet_ids: tuple[str, ...] | None = ()
    if zone_ids and candidates:
        subnet_ids = faults.of(_subnet_ids, path, group, create, candidates, zone_ids, aws)
    faults.answer()
    if release is None or zone_ids is None or subnet_ids is None:
        raise AssertionError("an answer is missing without a fault")
    return NodeGroupPlan(
        group.name,
        instance_type(group.instance_type),
        group.nodes,
        create,
        release,
        tuple(sorted(zone_ids)),
        subnet_ids,
    )


def _release(path: str, group: NodeGroupSettings, kubernetes_version: str, settings: Settings, aws: Aws) -> AmiRelease:
    """The pinned release, else the recommended one; the driver of a pin was checked with the stack file."""
    pin = group.create.ami_release if group.create else None
    if pin is not None:
        return pinned_ami(aws, path, kubernetes_version, pin).release
    release = recommended_ami(aws, path, kubernetes_version).release
    faults = [fault for line in image_lines_on(group, settings) for fault in driver_faults(path, line, release)]
    if faults:
        raise ConfigurationError(faults)
    return release


def _zone_ids(path: str, group: NodeGroupSettings, create: CreateSettings, aws: Aws) -> frozenset[str]:
    """The zone of the reserved capacity, else all that offer the type."""
    if create.reservation_id is not None:
        reservation = f"{path}.create.reservationId"
        zone = reservation_zone_id(aws, reservation, create.reservation_id, group.instance_type, group.nodes)
        return frozenset({zone})
    return zones.zone_ids_offering(aws, f"{path}.instanceType", group.instance_type)


def _subnet_ids(
    path: str,
    group: NodeGroupSettings,
    create: CreateSettings,
    candidates: tuple[Subnet, ...],
    zone_ids: frozenset[str],
    aws: Aws,
) -> tuple[str, ...]:
    path = f"{path}.create.subnetIds"
    if create.subnet_ids:
        candidates = zones.subnets(aws, path, create.subnet_ids)
    return tuple(one.id for one in zones.subnets_in_zones(path, group.instance_type, candidates, zone_ids))
