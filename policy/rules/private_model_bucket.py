"""private-model-bucket: a bucket of the stack cannot be read by the public."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatch

from pulumi_policy import Severity

from policy.buckets import CLASSIC_TYPES, NATIVE_TYPE, Companions, buckets, companions, policy_statements
from policy.resources import Resource, Stack
from policy.rule import Rule, Violation
from policy.values import Node

_FLAGS = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
_BLOCK = "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock"
_ACCOUNT_BLOCK = "aws:s3/accountPublicAccessBlock:AccountPublicAccessBlock"

_ACL_TYPES = frozenset({"aws:s3/bucketAcl:BucketAcl", "aws:s3/bucketAclV2:BucketAclV2"}) | CLASSIC_TYPES
_PUBLIC_ACLS = frozenset(
    {"public-read", "public-read-write", "authenticated-read", "PublicRead", "PublicReadWrite", "AuthenticatedRead"}
)
_PUBLIC_GROUPS = ("/global/AllUsers", "/global/AuthenticatedUsers")
# Where a policy stands, by resource type.
_POLICIES: Mapping[str, str] = {
    "aws:s3/bucketPolicy:BucketPolicy": "policy",
    "aws:s3/bucket:Bucket": "policy",
    "aws:s3/bucketV2:BucketV2": "policy",
    "aws-native:s3:BucketPolicy": "policyDocument",
}
# Conditions that, with fixed values, keep a statement for everyone from being public:
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/access-control-block-public-access.html
_NARROWING_KEYS = (
    "aws:principal*",
    "aws:sourcearn",
    "aws:sourceaccount",
    "aws:sourceowner",
    "aws:sourceip",
    "aws:sourcevpc",
    "aws:sourcevpce",
    "aws:sourceorgid",
    "aws:userid",
    "aws:username",
    "s3:x-amz-server-side-encryption-aws-kms-key-id",
    "s3:dataaccesspointarn",
    "s3:dataaccesspointaccount",
)
_EVERYONE = frozenset({"*", "0.0.0.0/0", "::/0"})
_FIX_BLOCK = f"give the bucket a BucketPublicAccessBlock with {', '.join(_FLAGS)} all true"


def judge_resource(resource: Resource) -> Iterator[Violation]:
    """Judge the ACLs and policies that one resource states."""
    for node, what in (*_public_acls(resource), *_public_statements(resource)):
        yield Violation(what, f"{resource} ({node.path})", "remove it, and name the roles that read", resource)


def judge_stack(stack: Stack) -> Iterator[Violation]:
    """Judge the blocks, which other resources than the buckets may hold."""
    accounts = [one for one in stack.resources if one.type == _ACCOUNT_BLOCK]
    if any(_missing_flags(one.props) == [] for one in accounts):
        return
    blocks = companions(stack, [_BLOCK])
    for bucket in buckets(stack):
        problem = _problem(bucket, blocks)
        if problem:
            yield Violation(problem, str(bucket), _FIX_BLOCK, bucket)


def _problem(bucket: Resource, blocks: Companions) -> str | None:
    own = bucket.props.at("publicAccessBlockConfiguration") if bucket.type == NATIVE_TYPE else None
    stated = [own] if own and not own.is_absent() else [one.props for one in blocks.of(bucket)]
    if not stated:
        return None if blocks.unplaced() else "no public access block"
    missing = min((_missing_flags(node) for node in stated), key=len)
    return f"the public access block leaves out {', '.join(missing)}" if missing else None


def _missing_flags(block: Node) -> list[str]:
    """The flags that are certainly not set."""
    flags = {name: block.at(name) for name in _FLAGS}
    return [name for name, flag in flags.items() if not flag.is_unknown() and flag.scalar() not in (True, "true")]


def _public_acls(resource: Resource) -> Iterator[tuple[Node, str]]:
    props = resource.props
    if resource.type == NATIVE_TYPE:
        acl, grants = props.at("accessControl"), []
    elif resource.type in _ACL_TYPES:
        acl = props.at("acl")
        grants = [grant.at("uri") for grant in props.at("grants").elements()]
        grants += [grant.at("grantee", "uri") for grant in props.at("accessControlPolicy", "grants").elements()]
    else:
        return
    if acl.text() in _PUBLIC_ACLS:
        yield acl, f"ACL {acl.text()} is public"
    for grant in grants:
        if (grant.text() or "").endswith(_PUBLIC_GROUPS):
            yield grant, f"a grant to {(grant.text() or '').rpartition('/')[2]} is public"


def _public_statements(resource: Resource) -> Iterator[tuple[Node, str]]:
    if resource.type not in _POLICIES:
        return
    policy = resource.props.at(_POLICIES[resource.type])
    for statement in policy_statements(policy):
        if _is_public(statement):
            yield policy, f"a statement that allows {statement.get('Action') or 'actions'} to everyone is public"


def _is_public(statement: Mapping[str, object]) -> bool:
    if statement.get("Effect") != "Allow":
        return False
    everyone = "NotPrincipal" in statement or _names_everyone(statement.get("Principal"))
    return everyone and not _is_narrowed(statement.get("Condition"))


def _names_everyone(principal: object) -> bool:
    if isinstance(principal, Mapping):
        return _names_everyone(principal.get("AWS"))
    if isinstance(principal, list):
        return any(_names_everyone(one) for one in principal)
    return principal == "*"


def _is_narrowed(condition: object) -> bool:
    """Whether a condition ties the statement to something that not everyone has."""
    if not isinstance(condition, Mapping):
        return False
    for operator, keys in condition.items():
        if "not" in str(operator).lower() or not isinstance(keys, Mapping):
            continue
        for key, values in keys.items():
            listed = values if isinstance(values, list) else [values]
            narrow = any(fnmatch(str(key).lower(), pattern) for pattern in _NARROWING_KEYS)
            if narrow and not _EVERYONE.intersection(map(str, listed)):
                return True
    return False


RULE = Rule(
    id="private-model-bucket",
    title="The model bucket is private",
    severity=Severity.CRITICAL,
    why=(
        "everyone who finds the bucket could read the weights, gated models and fine-tunes among them, at the "
        "account's cost for traffic; and who may write it chooses what the servers load and run."
    ),
    remediation=(
        "Give the bucket a public access block with all four settings.",
        "Remove public ACLs and grants, and policy statements that allow Principal * without a condition.",
        "Let pods read by a role: EKS Pod Identity for the pods that mount it.",
    ),
    judge_resource=judge_resource,
    judge_stack=judge_stack,
)
