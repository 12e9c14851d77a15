"""What Karpenter's controller may do: make and end its own cluster's nodes, and look.

Its instance profile is made with the stack: it may pass that role, and make none. The conditions are on the tags that
it puts on all it makes (Karpenter documentation, "Getting started", the controller's policies).
"""

from collections.abc import Iterator

from components.partition import arn
from components.statements import Statement, allow

_LAUNCHED = ("fleet", "instance", "volume", "network-interface", "launch-template", "spot-instances-request")
_USED = ("security-group", "subnet", "capacity-reservation")
_OF_A_POOL = "karpenter.sh/nodepool"
_DESCRIBED = (
    *("CapacityReservations", "Images", "Instances", "InstanceStatus", "InstanceTypeOfferings", "InstanceTypes"),
    *("LaunchTemplates", "PlacementGroups", "SecurityGroups", "SpotPriceHistory", "Subnets"),
)


def controller_statements(cluster: str, region: str, node_role_arn: str, queue_arn: str) -> list[Statement]:
    """The statements of the controller's role, for one cluster and region."""
    return [
        *_launching(cluster, region),
        *_tagging(cluster, region),
        allow(
            ["ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"],
            _ec2(region, ("instance", "launch-template")),
            _own("ResourceTag", cluster),
        ),
        allow(["iam:PassRole"], [node_role_arn], {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}}),
        allow(["sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"], [queue_arn]),
        *_reading(cluster, region),
    ]


def _launching(cluster: str, region: str) -> Iterator[Statement]:
    launch = ["ec2:RunInstances", "ec2:CreateFleet"]
    images = [arn(f"ec2:{region}::{kind}/*") for kind in ("image", "snapshot")]
    yield allow(launch, [*images, *_ec2(region, _USED)])
    yield allow(launch, _ec2(region, ("launch-template",)), _own("ResourceTag", cluster))
    made = [*launch, "ec2:CreateLaunchTemplate"]
    yield allow(made, _ec2(region, _LAUNCHED), _own("RequestTag", cluster))


def _tagging(cluster: str, region: str) -> Iterator[Statement]:
    """Everything when it is made; later only what names an instance and its claim."""
    made = _own("RequestTag", cluster)
    made["StringEquals"]["ec2:CreateAction"] = ["RunInstances", "CreateFleet", "CreateLaunchTemplate"]
    yield allow(["ec2:CreateTags"], _ec2(region, _LAUNCHED), made)
    later: dict[str, dict[str, object]] = _own("ResourceTag", cluster)
    later["StringEqualsIfExists"] = {"aws:RequestTag/eks:eks-cluster-name": cluster}
    later["ForAllValues:StringEquals"] = {"aws:TagKeys": ["eks:eks-cluster-name", "karpenter.sh/nodeclaim", "Name"]}
    yield allow(["ec2:CreateTags"], _ec2(region, ("instance",)), later)


def _reading(cluster: str, region: str) -> Iterator[Statement]:
    in_region = {"StringEquals": {"aws:RequestedRegion": region}}
    yield allow([f"ec2:Describe{what}" for what in _DESCRIBED], ["*"], in_region)
    yield allow(["ssm:GetParameter"], [arn(f"ssm:{region}::parameter/aws/service/*")])
    # Neither takes a resource to narrow it.
    yield allow(["pricing:GetProducts", "iam:ListInstanceProfiles"], ["*"])
    yield allow(["iam:GetInstanceProfile"], [arn("iam::*:instance-profile/*")])
    yield allow(["eks:DescribeCluster"], [arn(f"eks:{region}:*:cluster/{cluster}")])


def _own(place: str, cluster: str) -> dict[str, dict[str, object]]:
    """The condition that a thing has, or is made with, the tags of this cluster and of a NodePool."""
    return {
        "StringEquals": {f"aws:{place}/kubernetes.io/cluster/{cluster}": "owned"},
        "StringLike": {f"aws:{place}/{_OF_A_POOL}": "*"},
    }


def _ec2(region: str, kinds: tuple[str, ...]) -> list[str]:
    return [arn(f"ec2:{region}:*:{kind}/*") for kind in kinds]
