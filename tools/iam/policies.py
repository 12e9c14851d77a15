"""The policies as documents: who previews needs one, who deploys needs both."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from components.roles import CNI_POLICY, NODE_POLICIES
from components.statements import Statement as IamStatement
from components.statements import allow
from neuron.tags import STACK_TAG
from tools.iam.lifecycles import LIFECYCLES, VERBS

_ANYTHING = "*"
# The public parameters that name AMI releases; AWS owns them, so their ARNs have no account.
_AMI_PARAMETERS = "arn:aws:ssm:*::parameter/aws/service/eks/optimized-ami/*"
# Pulumi names it so, unless the stack file gives another name.
_MODEL_BUCKETS = "arn:aws:s3:::model-cache-*"
_ROLES = "arn:aws:iam::*:role/*"
_INSTANCE_PROFILES = "arn:aws:iam::*:instance-profile/*"
# components/karpenter.py; Pulumi adds to the names.
_QUEUES = "arn:aws:sqs:*:*:karpenter-*"
_EVENT_RULES = "arn:aws:events:*:*:rule/karpenter-*"
# pulumi-eks attaches it to the role of the control plane.
_CLUSTER_POLICY = "AmazonEKSClusterPolicy"
_SERVICES_WITH_ROLES = ("ec2.amazonaws.com", "eks.amazonaws.com", "pods.eks.amazonaws.com")
_SERVICES_WITH_OWN_ROLES = ("eks.amazonaws.com", "eks-nodegroup.amazonaws.com", "spot.amazonaws.com")

_OURS: Mapping[str, object] = MappingProxyType({"Null": {f"aws:ResourceTag/{STACK_TAG}": "false"}})
_TO_BE_OURS: Mapping[str, object] = MappingProxyType({"Null": {f"aws:RequestTag/{STACK_TAG}": "false"}})


@dataclass(frozen=True)
class Statement:
    """What is allowed on what, and when."""

    sid: str
    actions: Iterable[str]
    resource: str = _ANYTHING
    condition: Mapping[str, object] = field(default_factory=dict)

    def document(self) -> IamStatement:
        """The statement as IAM has it."""
        return {"Sid": self.sid, **allow(sorted(self.actions), self.resource, self.condition)}


# What components/lookups asks, the provider to know the account, and `make leftovers`.
PREVIEW = (
    Statement(
        "ReadTypesZonesAndUse",
        (
            "ec2:DescribeAvailabilityZones",
            "ec2:DescribeCapacityReservations",
            "ec2:DescribeInstanceTypeOfferings",
            "ec2:DescribeInstanceTypes",
            "ec2:DescribeInstances",
            "ec2:DescribeRouteTables",
            "ec2:DescribeSubnets",
        ),
    ),
    Statement("ReadClusterAndAddons", ("eks:DescribeAddonVersions", "eks:DescribeCluster", "eks:ListClusters")),
    Statement("ReadAmiReleases", ("ssm:GetParameters", "ssm:GetParametersByPath"), _AMI_PARAMETERS),
    Statement("ReadQuotas", ("servicequotas:GetAWSDefaultServiceQuota", "servicequotas:GetServiceQuota")),
    Statement("ReadWhatCarriesTheTag", ("iam:ListRoleTags", "iam:ListRoles", "tag:GetResources")),
    Statement("ReadIdentity", ("sts:GetCallerIdentity",)),
)


def up_statements() -> tuple[Statement, ...]:
    """What an update does beside a preview: made with the stack's tag, and taken away only where that tag is."""
    attach = {"iam:AttachRolePolicy", "iam:DetachRolePolicy"}
    create_role = {"iam:CreateRole", "iam:TagRole"}
    profile = {name for name in _all("iam", *VERBS) if name.endswith("InstanceProfile")}
    create_profile = {"iam:CreateInstanceProfile", "iam:TagInstanceProfile"}
    attachable = [f"arn:aws:iam::aws:policy/{name}" for name in sorted({*NODE_POLICIES, CNI_POLICY, _CLUSTER_POLICY})]
    create_key = {"kms:CreateKey", "kms:TagResource"}
    untagged = {"eks:DeleteAccessEntry", "eks:DisassociateAccessPolicy"}
    return (
        Statement("ReadNetworkAndNodes", _all("ec2", "read")),
        Statement("MakeNetworkAndNodes", _all("ec2", "create", "update")),
        Statement("RemoveNetworkAndNodes", _all("ec2", "delete") - _all("ec2", "create", "update"), condition=_OURS),
        # In a cluster that others made, what is made here hangs on a cluster without the tag.
        Statement("MakeClusterAndNodeGroups", _all("eks", "read", "create", "update") | untagged),
        Statement("RemoveClusterAndNodeGroups", _all("eks", "delete") - untagged, condition=_OURS),
        Statement("ReadRoles", _all("iam", "read") - profile, _ROLES),
        Statement("MakeRoles", create_role, _ROLES, _TO_BE_OURS),
        Statement(
            "ChangeAndRemoveRoles",
            _all("iam", "create", "update", "delete") - attach - create_role - profile,
            _ROLES,
            _OURS,
        ),
        Statement(
            "AttachKnownPolicies",
            attach,
            _ROLES,
            {**_OURS, "ArnEquals": {"iam:PolicyARN": attachable}},
        ),
        Statement("MakeInstanceProfile", create_profile, _INSTANCE_PROFILES, _TO_BE_OURS),
        Statement("ReadChangeAndRemoveInstanceProfile", profile - create_profile, _INSTANCE_PROFILES, _OURS),
        Statement(
            "GiveRolesToEks",
            ("iam:PassRole",),
            _ROLES,
            {"StringEquals": {"iam:PassedToService": list(_SERVICES_WITH_ROLES)}},
        ),
        Statement(
            "LetEksMakeItsOwnRoles",
            ("iam:CreateServiceLinkedRole",),
            condition={"StringEquals": {"iam:AWSServiceName": list(_SERVICES_WITH_OWN_ROLES)}},
        ),
        Statement("MakeKey", create_key, condition=_TO_BE_OURS),
        Statement("ReadChangeAndRemoveKey", _all("kms", *VERBS) - create_key, condition=_OURS),
        Statement("KarpenterQueue", _all("sqs", *VERBS), _QUEUES),
        Statement("KarpenterEvents", _all("events", *VERBS), _EVENT_RULES),
        Statement("ModelBucket", _all("s3", *VERBS), _MODEL_BUCKETS),
        Statement("ListLeftovers", ("iam:ListRoleTags", "iam:ListRoles", "tag:GetResources")),
    )


def document(statements: Iterable[Statement]) -> str:
    """The JSON of a policy."""
    listed = [statement.document() for statement in statements]
    return f"{json.dumps({'Version': '2012-10-17', 'Statement': listed}, indent=2)}\n"


def _all(service: str, *verbs: str) -> frozenset[str]:
    """The actions of all resource types of a service."""
    rows = [one for one in LIFECYCLES.values() if one.service == service]
    return frozenset(name for row in rows for verb in verbs for name in row.names(verb))
