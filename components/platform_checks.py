"""What the values of a stack file below its model servers mean together: cluster, node groups made here, charts."""

from collections.abc import Iterator
from ipaddress import IPv4Network

from components.faults import Fault
from components.settings import Settings
from components.settings.cluster import CreatedCluster, ExistingCluster
from components.settings.node_groups import CreateSettings, NodeGroupSettings
from neuron.ami import AmiRelease, compatible, newest_compatible_date, parse_pin
from neuron.errors import ImpossibleInputError
from neuron.images import IMAGE_LINES, ImageLine
from neuron.instances import INSTANCE_TYPES
from neuron.placement import chips_per_pod, needs_neighbouring_chips
from neuron.quota import (
    NodeGroupCapacity,
    NodePoolCapacity,
    Update,
    bucket_of,
    check_quotas,
    declared_quotas,
    needs,
)

EVERYWHERE = "0.0.0.0/0"
# Two subnets in each of up to six zones; EC2 takes no network larger than /16.
VPC_PREFIXES = range(16, 21)
# EKS puts the control plane's interfaces into two zones.
MINIMUM_SUBNETS = 2
# Purchases of capacity that was reserved before, under an id.
RESERVED = ("capacity-reservation", "capacity-block")


def check_platform(settings: Settings) -> Iterator[Fault]:
    """All faults of cluster, node groups made here, accelerator and charts."""
    if isinstance(settings.cluster, CreatedCluster):
        yield from _created_cluster(settings.cluster, settings)
    for index, group in enumerate(settings.node_groups):
        if group.create is not None:
            yield from _created_group(f"nodeGroups[{index}].create", group, group.create, settings)
    yield from _accelerator(settings)
    yield from _charts(settings)
    yield from _quotas(settings)


def kube_scheduler_faults(settings: Settings, kubernetes_version: str) -> Iterator[Fault]:
    """The fault of an extended scheduler that is not of the cluster's minor version."""
    image = settings.accelerator.kube_scheduler_image if settings.accelerator else None
    if image is not None and not image.rpartition(":")[2].startswith(f"v{kubernetes_version}."):
        yield Fault(
            "accelerator.kubeSchedulerImage",
            image,
            f"a kube-scheduler of the cluster's Kubernetes {kubernetes_version}",
            f"use a tag that begins with v{kubernetes_version}.",
        )


def installs_scheduler_extension(settings: Settings) -> bool:
    """Whether this stack installs the Neuron scheduler extension: asked for, or needed by one of its pods."""
    if settings.accelerator is None or settings.accelerator.devices == "dra":
        return False
    return settings.accelerator.scheduler_extension == "always" or any(_needs_extension(settings))


def driver_faults(path: str, line: ImageLine, release: AmiRelease) -> tuple[Fault, ...]:
    """The fault of a release whose driver the image line is known not to run on; nothing if it may."""
    judged = compatible(line, release)
    if judged.verdict != "incompatible":
        return ()
    date = newest_compatible_date(line)
    return (
        Fault(
            path,
            judged.reason,
            "a release with a driver in that range",
            f"pin the release of {date}, the newest known one" if date else "use another image line",
        ),
    )


def image_lines_on(group: NodeGroupSettings, settings: Settings) -> list[ImageLine]:
    """The image lines of the model servers on a node group."""
    names = {one.image_line: None for one in settings.serving if one.node_group == group.name}
    return [IMAGE_LINES[name] for name in names if name in IMAGE_LINES]


def _created_cluster(cluster: CreatedCluster, settings: Settings) -> Iterator[Fault]:
    if EVERYWHERE in cluster.public_access_cidrs:
        yield Fault(
            "cluster.publicAccessCidrs",
            EVERYWHERE,
            "the networks from which the cluster's API is used; an empty list for the VPC alone",
            "name the networks",
        )
    if (cluster.vpc_cidr is None) == (not cluster.subnet_ids):
        found = "neither vpcCidr nor subnetIds" if cluster.vpc_cidr is None else "vpcCidr beside subnetIds"
        yield Fault("cluster", found, "one of the two: a VPC made here, or subnets that exist", "set one")
    if cluster.vpc_cidr is not None and IPv4Network(cluster.vpc_cidr).prefixlen not in VPC_PREFIXES:
        yield Fault("cluster.vpcCidr", cluster.vpc_cidr, "a network between /16 and /20", "set 10.0.0.0/16")
    if cluster.subnet_ids and len(cluster.subnet_ids) < MINIMUM_SUBNETS:
        yield Fault("cluster.subnetIds", "one subnet", "two or more, in different zones", "add one")
    if settings.accelerator is None:
        yield Fault("accelerator", "nothing, in a stack that makes its cluster", "a section", "set accelerator: {}")


def _created_group(path: str, group: NodeGroupSettings, create: CreateSettings, settings: Settings) -> Iterator[Fault]:
    if not isinstance(settings.cluster, CreatedCluster | ExistingCluster):
        yield Fault(
            path,
            f"a node group made in a cluster of mode {settings.cluster.mode}",
            "mode create or existing: node groups are made with the cluster's EKS name",
            "leave create out, or change cluster.mode",
        )
    if create.subnet_ids and isinstance(settings.cluster, CreatedCluster) and settings.cluster.vpc_cidr is not None:
        yield Fault(f"{path}.subnetIds", "subnets, beside cluster.vpcCidr", "none: the VPC is made here", "drop them")
    if create.min_nodes is not None and create.min_nodes > group.nodes:
        yield Fault(f"{path}.minNodes", str(create.min_nodes), f"{group.nodes} (nodes) or less", "lower it")
    if (create.purchase in RESERVED) != (create.reservation_id is not None):
        found = f"{'none' if create.reservation_id is None else 'one'} with purchase {create.purchase}"
        fix = "set it" if create.reservation_id is None else "leave it out"
        yield Fault(f"{path}.reservationId", found, f"one with {' or '.join(RESERVED)}, none else", fix)
    if create.provisioner == "karpenter":
        yield from _karpenter_group(path, create)
    if create.ami_release is not None:
        yield from _pinned_release(f"{path}.amiRelease", create.ami_release, group, settings)


def _karpenter_group(path: str, create: CreateSettings) -> Iterator[Fault]:
    if create.purchase in RESERVED:
        allowed = "on-demand or spot: reserved capacity is there whether pods wait or not"
        yield Fault(f"{path}.purchase", f"{create.purchase} beside karpenter", allowed, "use provisioner managed")
    if create.min_nodes is not None:
        yield Fault(f"{path}.minNodes", "a value beside karpenter", "none: nodes come with pods", "drop it")


def _pinned_release(path: str, pin: str, group: NodeGroupSettings, settings: Settings) -> Iterator[Fault]:
    version = settings.cluster.version if isinstance(settings.cluster, CreatedCluster) else None
    try:
        release = parse_pin(pin, version or "")
    except ImpossibleInputError:
        yield Fault(path, pin, "a release such as 1.36.2-20260714, or its date, 20260714", "correct the release")
        return
    if version is not None and release.kubernetes_version != version:
        yield Fault(path, pin, f"a release for Kubernetes {version} (cluster.version)", "pin one, or its date alone")
    for line in image_lines_on(group, settings):
        yield from driver_faults(path, line, release)


def _accelerator(settings: Settings) -> Iterator[Fault]:
    accelerator = settings.accelerator
    if accelerator is None:
        return
    if accelerator.devices == "dra" and settings.serving:
        yield Fault(
            "accelerator.devices",
            "dra, beside model servers that ask for aws.amazon.com/neuron",
            "device-plugin: only the device plugin offers that resource, and DRA excludes the plugin",
            "set device-plugin",
        )
    if accelerator.devices == "dra" and accelerator.scheduler_extension == "always":
        yield Fault("accelerator.schedulerExtension", "always, beside dra", "auto: DRA places chips itself", "drop it")
    if accelerator.node_problem_detector == "recover" and settings.cluster.mode == "kubeconfig":
        yield Fault(
            "accelerator.nodeProblemDetector",
            f"recover in a cluster of mode {settings.cluster.mode}",
            "none or detect: recovery needs a role, bound to the cluster by its EKS name",
            "set detect",
        )
    if installs_scheduler_extension(settings) and accelerator.kube_scheduler_image is None:
        yield Fault(
            "accelerator.kubeSchedulerImage",
            "none, though the scheduler extension is installed: a pod takes several chips of a node but not all"
            if any(_needs_extension(settings))
            else "none, though the scheduler extension is installed",
            "the kube-scheduler image of the cluster's minor version: the chart's own is of 1.31",
            "set public.ecr.aws/eks-distro/kubernetes/kube-scheduler with the tag of your version",
        )
    if isinstance(settings.cluster, CreatedCluster):
        yield from kube_scheduler_faults(settings, settings.cluster.version)


def _needs_extension(settings: Settings) -> Iterator[bool]:
    """For each model server, whether it needs the extension; those on unknown types are not known to."""
    for serving in settings.serving:
        group = settings.node_group(serving.node_group)
        instance = INSTANCE_TYPES.get(group.instance_type) if group else None
        if instance is not None:
            yield needs_neighbouring_chips(chips_per_pod(serving.model.tensor_parallel, instance), instance)


def _charts(settings: Settings) -> Iterator[Fault]:
    if settings.charts.folder is not None and settings.charts.mirror is not None:
        yield Fault("charts", "folder beside mirror", "one of the two", "drop one")


def _quotas(settings: Settings) -> Iterator[Fault]:
    """What the node groups made here need at their largest, against the quotas that the stack file declares."""
    declared = declared_quotas(settings.quotas.stated(), "declared in the stack file")
    for verdict in check_quotas(needs(_capacities(settings), _pools(settings)), declared):
        if verdict.fits is False:
            yield Fault(
                "nodeGroups",
                str(verdict),
                f"{verdict.quota.available_vcpus if verdict.quota else 0} vCPUs",
                "lower nodes, set updateStrategy MINIMAL, or have the quota raised",
            )


def _capacities(settings: Settings) -> Iterator[NodeGroupCapacity]:
    for group in settings.node_groups:
        instance = INSTANCE_TYPES.get(group.instance_type)
        if group.create is None or group.create.provisioner != "managed" or instance is None:
            continue
        update = Update(max_unavailable=group.create.max_unavailable, strategy=group.create.update_strategy)
        yield NodeGroupCapacity(group.name, instance, group.nodes, group.create.purchase, update)


def _pools(settings: Settings) -> Iterator[NodePoolCapacity]:
    """Of the groups whose nodes Karpenter makes, up to the limits of their pools."""
    for group in settings.node_groups:
        instance = INSTANCE_TYPES.get(group.instance_type)
        if group.create is None or group.create.provisioner != "karpenter" or instance is None:
            continue
        bucket = bucket_of(instance, group.create.purchase)
        if bucket is not None:
            yield NodePoolCapacity(group.name, group.nodes * instance.vcpus, frozenset({bucket}))
