"""What Pulumi's AWS provider calls for each resource type that a stack may register.

Sources: the provider's resources (hashicorp/terraform-provider-aws, which pulumi-aws wraps) and the service
authorization reference. Some reads are of settings that no stack uses: the provider asks for them all the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Lifecycle:
    """IAM actions of one resource type, by what they do. Names are separated by spaces, without their service."""

    service: str
    create: str
    read: str
    update: str
    delete: str

    def names(self, verb: str) -> frozenset[str]:
        """The full names of the actions of `create`, `read`, `update` or `delete`."""
        return frozenset(f"{self.service}:{name}" for name in getattr(self, verb).split())


VERBS = ("create", "read", "update", "delete")


def _ec2(create: str, read: str, update: str, delete: str) -> Lifecycle:
    """Tags of EC2 come with their resource and change by themselves."""
    return Lifecycle("ec2", f"{create} CreateTags", read, f"{update} CreateTags DeleteTags", delete)


def _eks(name: str, update: str, read: str = "") -> Lifecycle:
    return Lifecycle(
        "eks",
        f"Create{name} TagResource",
        f"Describe{name} {read}",
        f"{update} TagResource UntagResource",
        f"Delete{name}",
    )


def _bucket(setting: str) -> Lifecycle:
    """A setting of a bucket, which is deleted by putting it back."""
    return Lifecycle("s3", f"Put{setting}", f"Get{setting}", f"Put{setting}", f"Put{setting}")


_ROLE_READ = "GetRole GetRolePolicy ListRolePolicies ListAttachedRolePolicies ListInstanceProfilesForRole"
_BUCKET_READ = (
    "ListBucket GetBucketLocation GetBucketTagging GetBucketAcl GetBucketPolicy GetBucketCORS GetBucketWebsite "
    "GetBucketVersioning GetBucketLogging GetBucketRequestPayment GetBucketObjectLockConfiguration "
    "GetAccelerateConfiguration GetLifecycleConfiguration GetReplicationConfiguration GetEncryptionConfiguration"
)

LIFECYCLES: Mapping[str, Lifecycle] = MappingProxyType(
    {
        "aws:ec2/vpc:Vpc": _ec2(
            "CreateVpc ModifyVpcAttribute",
            "DescribeVpcs DescribeVpcAttribute DescribeNetworkAcls DescribeSecurityGroups DescribeRouteTables",
            "ModifyVpcAttribute",
            "DeleteVpc",
        ),
        "aws:ec2/internetGateway:InternetGateway": _ec2(
            "CreateInternetGateway AttachInternetGateway",
            "DescribeInternetGateways",
            "",
            "DetachInternetGateway DeleteInternetGateway",
        ),
        "aws:ec2/subnet:Subnet": _ec2(
            "CreateSubnet", "DescribeSubnets DescribeNetworkInterfaces", "ModifySubnetAttribute", "DeleteSubnet"
        ),
        "aws:ec2/routeTable:RouteTable": _ec2("CreateRouteTable", "DescribeRouteTables", "", "DeleteRouteTable"),
        "aws:ec2/route:Route": Lifecycle("ec2", "CreateRoute", "DescribeRouteTables", "ReplaceRoute", "DeleteRoute"),
        "aws:ec2/routeTableAssociation:RouteTableAssociation": Lifecycle(
            "ec2",
            "AssociateRouteTable",
            "DescribeRouteTables",
            "ReplaceRouteTableAssociation",
            "DisassociateRouteTable",
        ),
        "aws:ec2/eip:Eip": _ec2(
            "AllocateAddress", "DescribeAddresses DescribeAddressesAttribute", "", "ReleaseAddress"
        ),
        "aws:ec2/natGateway:NatGateway": _ec2("CreateNatGateway", "DescribeNatGateways", "", "DeleteNatGateway"),
        "aws:ec2/vpcEndpoint:VpcEndpoint": _ec2(
            "CreateVpcEndpoint", "DescribeVpcEndpoints DescribePrefixLists", "ModifyVpcEndpoint", "DeleteVpcEndpoints"
        ),
        "aws:ec2/vpcEndpointPolicy:VpcEndpointPolicy": Lifecycle(
            "ec2", "ModifyVpcEndpoint", "DescribeVpcEndpoints", "ModifyVpcEndpoint", "ModifyVpcEndpoint"
        ),
        # EKS tries the launch itself, with the rights of whoever makes the node group.
        "aws:ec2/launchTemplate:LaunchTemplate": _ec2(
            "CreateLaunchTemplate RunInstances",
            "DescribeLaunchTemplates DescribeLaunchTemplateVersions",
            "CreateLaunchTemplateVersion ModifyLaunchTemplate",
            "DeleteLaunchTemplate",
        ),
        "aws:eks/cluster:Cluster": _eks("Cluster", "UpdateClusterConfig UpdateClusterVersion", "DescribeUpdate"),
        "aws:eks/accessEntry:AccessEntry": _eks("AccessEntry", "UpdateAccessEntry"),
        "aws:eks/accessPolicyAssociation:AccessPolicyAssociation": Lifecycle(
            "eks", "AssociateAccessPolicy", "ListAssociatedAccessPolicies", "", "DisassociateAccessPolicy"
        ),
        "aws:eks/addon:Addon": _eks("Addon", "UpdateAddon", "DescribeUpdate DescribePodIdentityAssociation"),
        "aws:eks/nodeGroup:NodeGroup": _eks(
            "Nodegroup", "UpdateNodegroupConfig UpdateNodegroupVersion", "DescribeUpdate"
        ),
        "aws:eks/podIdentityAssociation:PodIdentityAssociation": _eks(
            "PodIdentityAssociation", "UpdatePodIdentityAssociation"
        ),
        "aws:iam/role:Role": Lifecycle(
            "iam", "CreateRole TagRole", _ROLE_READ, "UpdateAssumeRolePolicy TagRole UntagRole", "DeleteRole"
        ),
        "aws:iam/instanceProfile:InstanceProfile": Lifecycle(
            "iam",
            "CreateInstanceProfile TagInstanceProfile AddRoleToInstanceProfile",
            "GetInstanceProfile",
            "AddRoleToInstanceProfile RemoveRoleFromInstanceProfile TagInstanceProfile UntagInstanceProfile",
            "RemoveRoleFromInstanceProfile DeleteInstanceProfile",
        ),
        "aws:iam/rolePolicy:RolePolicy": Lifecycle(
            "iam", "PutRolePolicy", "GetRolePolicy", "PutRolePolicy", "DeleteRolePolicy"
        ),
        "aws:iam/rolePolicyAttachment:RolePolicyAttachment": Lifecycle(
            "iam", "AttachRolePolicy", "ListAttachedRolePolicies", "", "DetachRolePolicy"
        ),
        # EKS takes a grant on the key with the rights of whoever makes the cluster.
        "aws:kms/key:Key": Lifecycle(
            "kms",
            "CreateKey TagResource EnableKeyRotation CreateGrant",
            "DescribeKey GetKeyPolicy GetKeyRotationStatus ListResourceTags",
            "UpdateKeyDescription PutKeyPolicy TagResource UntagResource",
            "ScheduleKeyDeletion",
        ),
        "aws:sqs/queue:Queue": Lifecycle(
            "sqs",
            "CreateQueue TagQueue SetQueueAttributes",
            "GetQueueAttributes GetQueueUrl ListQueueTags",
            "SetQueueAttributes TagQueue UntagQueue",
            "DeleteQueue",
        ),
        "aws:sqs/queuePolicy:QueuePolicy": Lifecycle(
            "sqs", "SetQueueAttributes", "GetQueueAttributes", "SetQueueAttributes", "SetQueueAttributes"
        ),
        "aws:cloudwatch/eventRule:EventRule": Lifecycle(
            "events",
            "PutRule TagResource",
            "DescribeRule ListTagsForResource",
            "PutRule TagResource UntagResource",
            "DeleteRule",
        ),
        "aws:cloudwatch/eventTarget:EventTarget": Lifecycle(
            "events", "PutTargets", "ListTargetsByRule", "PutTargets", "RemoveTargets"
        ),
        "aws:s3/bucket:Bucket": Lifecycle(
            "s3", "CreateBucket PutBucketTagging", _BUCKET_READ, "PutBucketTagging", "DeleteBucket"
        ),
        "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock": _bucket("BucketPublicAccessBlock"),
        "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration": _bucket(
            "EncryptionConfiguration"
        ),
        "aws:s3/bucketVersioning:BucketVersioning": _bucket("BucketVersioning"),
        "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration": _bucket("LifecycleConfiguration"),
        "aws:s3/bucketPolicy:BucketPolicy": Lifecycle(
            "s3", "PutBucketPolicy", "GetBucketPolicy", "PutBucketPolicy", "DeleteBucketPolicy"
        ),
    }
)

# What pulumi-eks registers for a cluster as components/control_plane.py asks for one.
PARTS_OF_EKS_CLUSTER = (
    "aws:eks/cluster:Cluster",
    "aws:eks/accessEntry:AccessEntry",
    "aws:eks/accessPolicyAssociation:AccessPolicyAssociation",
    "aws:iam/role:Role",
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
)
