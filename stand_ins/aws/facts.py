"""What AWS and the real plugin do with the resource types used here: ids, ARNs, outputs, and what cannot change.

Immutable inputs are those that terraform-provider-aws (6.x, on which pulumi-aws 7 rests) marks ForceNew or
RequiresReplace. Texts are templates: {property} is an input, {hex:17} so many hexadecimal digits of the resource's own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

ACCOUNT = "123456789012"  # moto's
# The provider makes names of these properties where the program gives none; elsewhere of an optional `name`.
NAME_PROPERTIES = {
    "aws:eks/nodeGroup:NodeGroup": "nodeGroupName",
    "aws:s3/bucket:Bucket": "bucket",
}
NAME_PREFIXES = {"aws:kms/alias:Alias": "alias/"}
DEFAULTS: Mapping[str, Mapping[str, object]] = {
    "aws:ec2/securityGroup:SecurityGroup": {"description": "Managed by Pulumi"},
}
# Every resource since pulumi-aws 7.
ALWAYS_IMMUTABLE = ("region",)


@dataclass(frozen=True)
class Facts:
    """Of one resource type. `revised` are outputs that every update makes anew."""

    id: str = "{hex:17}"
    arn: str = "arn:{partition}:{service}:{region}:{account}:{kind}/{id}"
    immutable: tuple[str, ...] = ()
    outputs: Mapping[str, object] = field(default_factory=dict)
    revised: tuple[str, ...] = ()


_EC2_ARN = "arn:{partition}:ec2:{region}:{account}:"
_EKS_ARN = "arn:{partition}:eks:{region}:{account}:"
_IAM_ARN = "arn:{partition}:iam::{account}:"
_NAME = ("name", "namePrefix")


def _ec2(prefix: str, kind: str, *immutable: str, **outputs: object) -> Facts:
    return Facts(f"{prefix}-{{hex:17}}", f"{_EC2_ARN}{kind}/{{id}}", immutable, outputs)


def _of_bucket(*immutable: str) -> Facts:
    return Facts("{bucket}", "arn:{partition}:s3:::{bucket}", ("bucket", "expectedBucketOwner", *immutable))


FACTS: Mapping[str, Facts] = {
    "aws:ec2/vpc:Vpc": _ec2(
        "vpc",
        "vpc",
        "cidrBlock",
        "ipv4IpamPoolId",
        "ipv4NetmaskLength",
        defaultSecurityGroupId="sg-{hex:17}",
        defaultNetworkAclId="acl-{hex:17}",
        mainRouteTableId="rtb-{hex:17}",
        defaultRouteTableId="rtb-{hex:17}",
        dhcpOptionsId="dopt-{hex:17}",
        ownerId="{account}",
        instanceTenancy="default",
        enableDnsSupport=True,
    ),
    "aws:ec2/subnet:Subnet": _ec2(
        "subnet",
        "subnet",
        "vpcId",
        "cidrBlock",
        "availabilityZone",
        "availabilityZoneId",
        "outpostArn",
        ownerId="{account}",
    ),
    "aws:ec2/internetGateway:InternetGateway": _ec2("igw", "internet-gateway", ownerId="{account}"),
    "aws:ec2/eip:Eip": Facts(
        "eipalloc-{hex:17}",
        _EC2_ARN + "elastic-ip/{id}",
        ("domain", "publicIpv4Pool", "address", "networkBorderGroup", "customerOwnedIpv4Pool"),
        {"allocationId": "{id}", "publicIp": "192.0.2.1", "publicDns": "ec2-192-0-2-1.{region}.compute.invalid"},
    ),
    "aws:ec2/natGateway:NatGateway": _ec2(
        "nat", "natgateway", "subnetId", "allocationId", "connectivityType", "privateIp", connectivityType="public"
    ),
    "aws:ec2/routeTable:RouteTable": _ec2("rtb", "route-table", "vpcId", ownerId="{account}"),
    "aws:ec2/route:Route": Facts(
        "r-{routeTableId}{hex:10}",
        immutable=("routeTableId", "destinationCidrBlock", "destinationIpv6CidrBlock", "destinationPrefixListId"),
        outputs={"origin": "CreateRoute", "state": "active"},
    ),
    "aws:ec2/routeTableAssociation:RouteTableAssociation": _ec2(
        "rtbassoc", "route-table-association", "subnetId", "gatewayId"
    ),
    "aws:ec2/vpcEndpoint:VpcEndpoint": _ec2(
        "vpce", "vpc-endpoint", "vpcId", "serviceName", "vpcEndpointType", ownerId="{account}", state="available"
    ),
    "aws:ec2/securityGroup:SecurityGroup": _ec2(
        "sg", "security-group", "vpcId", "description", *_NAME, ownerId="{account}"
    ),
    "aws:ec2/securityGroupRule:SecurityGroupRule": Facts(
        "sgrule-{number:10}",
        immutable=(
            "securityGroupId",
            "type",
            "protocol",
            "fromPort",
            "toPort",
            "cidrBlocks",
            "ipv6CidrBlocks",
            "prefixListIds",
            "self",
            "sourceSecurityGroupId",
        ),
        outputs={"securityGroupRuleId": "sgr-{hex:17}"},
    ),
    **{
        f"aws:vpc/securityGroup{way}Rule:SecurityGroup{way}Rule": Facts(
            "sgr-{hex:17}",
            _EC2_ARN + "security-group-rule/{id}",
            ("securityGroupId",),
            {"securityGroupRuleId": "{id}"},
        )
        for way in ("Ingress", "Egress")
    },
    "aws:ec2/launchTemplate:LaunchTemplate": Facts(
        "lt-{hex:17}",
        _EC2_ARN + "launch-template/{id}",
        _NAME,
        {"latestVersion": 1, "defaultVersion": 1},
        ("latestVersion",),
    ),
    "aws:ec2/placementGroup:PlacementGroup": Facts(
        "{name}", _EC2_ARN + "placement-group/{name}", ("name", "strategy", "partitionCount", "spreadLevel")
    ),
    "aws:iam/role:Role": Facts(
        "{name}",
        _IAM_ARN + "role/{name}",
        (*_NAME, "path"),
        {"uniqueId": "AROA{hex:17}", "createDate": "2026-01-01T00:00:00Z", "maxSessionDuration": 3600, "path": "/"},
    ),
    "aws:iam/rolePolicy:RolePolicy": Facts("{role}:{name}", immutable=("role", *_NAME)),
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": Facts("{role}/{policyArn}", immutable=("role", "policyArn")),
    "aws:iam/policy:Policy": Facts(
        _IAM_ARN + "policy/{name}",
        "{id}",
        (*_NAME, "path", "description"),
        {"policyId": "ANPA{hex:17}", "path": "/", "attachmentCount": 0},
    ),
    "aws:iam/instanceProfile:InstanceProfile": Facts(
        "{name}", _IAM_ARN + "instance-profile/{name}", (*_NAME, "path"), {"uniqueId": "AIPA{hex:17}", "path": "/"}
    ),
    "aws:iam/openIdConnectProvider:OpenIdConnectProvider": Facts(_IAM_ARN + "oidc-provider/{hex:32}", "{id}", ("url",)),
    "aws:kms/key:Key": Facts(
        "{hex:8}-0000-4000-8000-{hex:12}",
        "arn:{partition}:kms:{region}:{account}:key/{id}",
        ("customKeyStoreId", "customerMasterKeySpec", "keyUsage", "multiRegion"),
        {"keyId": "{id}", "keyUsage": "ENCRYPT_DECRYPT", "rotationPeriodInDays": 365},
    ),
    "aws:kms/alias:Alias": Facts("{name}", "arn:{partition}:kms:{region}:{account}:{name}", _NAME),
    "aws:eks/cluster:Cluster": Facts(
        "{name}",
        _EKS_ARN + "cluster/{name}",
        (
            "name",
            "roleArn",
            "bootstrapSelfManagedAddons",
            "accessConfig.bootstrapClusterCreatorAdminPermissions",
            "kubernetesNetworkConfig.ipFamily",
            "kubernetesNetworkConfig.serviceIpv4Cidr",
            "outpostConfig.controlPlaneInstanceType",
            "outpostConfig.controlPlanePlacement",
        ),
        {
            "status": "ACTIVE",
            "platformVersion": "eks.1",
            "createdAt": "2026-01-01T00:00:00Z",
            "endpoint": "{control_plane_endpoint}",
            "certificateAuthority": {"data": "{control_plane_authority}"},
            "identities": [{"oidcs": [{"issuer": "https://oidc.eks.{region}.stand-in.invalid/id/{hex:32}"}]}],
            "vpcConfig": {"clusterSecurityGroupId": "sg-{hex:17}"},
            "kubernetesNetworkConfig": {"ipFamily": "ipv4", "serviceIpv4Cidr": "172.20.0.0/16"},
            "upgradePolicy": {"supportType": "EXTENDED"},
        },
    ),
    "aws:eks/nodeGroup:NodeGroup": Facts(
        "{clusterName}:{nodeGroupName}",
        _EKS_ARN + "nodegroup/{clusterName}/{nodeGroupName}/{hex:8}",
        (
            "amiType",
            "capacityType",
            "clusterName",
            "diskSize",
            "instanceTypes",
            "launchTemplate.id",
            "launchTemplate.name",
            "nodeGroupName",
            "nodeGroupNamePrefix",
            "nodeRoleArn",
            "remoteAccess",
            "subnetIds",
        ),
        {"status": "ACTIVE", "resources": [{"autoscalingGroups": [{"name": "eks-{nodeGroupName}-{hex:8}"}]}]},
    ),
    "aws:eks/addon:Addon": Facts(
        "{clusterName}:{addonName}",
        _EKS_ARN + "addon/{clusterName}/{addonName}/{hex:8}",
        ("clusterName", "addonName", "namespaceConfig"),
        {"createdAt": "2026-01-01T00:00:00Z", "modifiedAt": "2026-01-01T00:00:00Z"},
    ),
    "aws:eks/accessEntry:AccessEntry": Facts(
        "{clusterName}:{principalArn}",
        _EKS_ARN + "access-entry/{clusterName}/{hex:8}",
        ("clusterName", "principalArn", "type"),
        {"accessEntryArn": "{arn}", "createdAt": "2026-01-01T00:00:00Z", "modifiedAt": "2026-01-01T00:00:00Z"},
    ),
    "aws:eks/accessPolicyAssociation:AccessPolicyAssociation": Facts(
        "{clusterName}#{principalArn}#{policyArn}",
        immutable=("clusterName", "principalArn", "policyArn", "accessScope"),
    ),
    "aws:eks/podIdentityAssociation:PodIdentityAssociation": Facts(
        "a-{hex:17}",
        immutable=("clusterName", "namespace", "serviceAccount"),
        outputs={
            "associationId": "{id}",
            "associationArn": _EKS_ARN + "podidentityassociation/{clusterName}/{id}",
        },
    ),
    "aws:s3/bucket:Bucket": Facts(
        "{bucket}",
        "arn:{partition}:s3:::{bucket}",
        ("bucket", "bucketPrefix", "objectLockEnabled", "bucketNamespace"),
        {
            "bucketDomainName": "{bucket}.s3.stand-in.invalid",
            "bucketRegionalDomainName": "{bucket}.s3.{region}.stand-in.invalid",
            "bucketRegion": "{region}",
            "hostedZoneId": "Z3AQBSTGFYJSTF",
        },
    ),
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock": Facts("{bucket}", immutable=("bucket",)),
    "aws:s3/bucketPolicy:BucketPolicy": Facts("{bucket}", immutable=("bucket",)),
    "aws:s3/bucketOwnershipControls:BucketOwnershipControls": Facts("{bucket}", immutable=("bucket",)),
    "aws:s3/bucketVersioning:BucketVersioning": _of_bucket(),
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration": _of_bucket(),
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration": _of_bucket(),
    "aws:s3/bucketLogging:BucketLogging": _of_bucket(),
    "aws:ssm/parameter:Parameter": Facts(
        "{name}", "arn:{partition}:ssm:{region}:{account}:parameter/{name}", ("name",), {"version": 1}, ("version",)
    ),
    "aws:cloudwatch/logGroup:LogGroup": Facts(
        "{name}", "arn:{partition}:logs:{region}:{account}:log-group:{name}", _NAME
    ),
    "aws:sqs/queue:Queue": Facts(
        "https://sqs.{region}.stand-in.invalid/{account}/{name}",
        "arn:{partition}:sqs:{region}:{account}:{name}",
        (*_NAME, "fifoQueue"),
        {"url": "{id}"},
    ),
    "aws:sqs/queuePolicy:QueuePolicy": Facts("{queueUrl}", immutable=("queueUrl",)),
    "aws:cloudwatch/eventRule:EventRule": Facts(
        "{name}", "arn:{partition}:events:{region}:{account}:rule/{name}", (*_NAME, "eventBusName")
    ),
    "aws:cloudwatch/eventTarget:EventTarget": Facts(
        "{rule}-{hex:8}", immutable=("rule", "eventBusName", "targetId"), outputs={"targetId": "stand-in-{hex:8}"}
    ),
}


def facts(token: str) -> Facts:
    """The facts of a type; for one that is not in the table, an id and an ARN of the usual form."""
    return FACTS.get(token, Facts(immutable=_NAME))
