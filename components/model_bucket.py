"""The S3 bucket of the model cache: private, encrypted, versioned; and what pods may do with it."""

import pulumi
import pulumi_aws as aws

from components.partition import arn
from components.settings.model_cache import ModelCacheSettings
from components.statements import Statement, allow, deny_without_tls, policy_document
from components.tags import stack_tags

# What a node reads from S3: layers of images in ECR (EKS's own come from there), packages of Amazon Linux, the agent of
# Session Manager. Sources: the user guides of ECR ("Amazon ECR interface VPC endpoints"), Amazon Linux 2023 and Systems
# Manager ("SSM Agent communications with AWS managed S3 buckets").
_NODE_BUCKETS = (
    "prod-{region}-starport-layer-bucket",
    "al2023-repos-{region}-de612dc2",
    "amazon-ssm-{region}",
    "aws-ssm-{region}",
)
_OLD_VERSIONS_DAYS = 30
_UNFINISHED_UPLOADS_DAYS = 7
# What Mountpoint needs (its documentation, "IAM permissions"); nothing here deletes, so nobody may.
_LOAD = ("s3:GetObject",)
_PUBLISH = (*_LOAD, "s3:PutObject", "s3:AbortMultipartUpload")


def model_bucket(name: str, settings: ModelCacheSettings, parent: pulumi.Resource) -> pulumi.Output[str]:
    """The name of the bucket: one that exists, or one that is registered here."""
    if settings.create_bucket:
        return _make(name, settings, parent)
    return pulumi.Output.from_input(settings.bucket or "")


def access_statements(bucket: str, *, publishes: bool) -> list[Statement]:
    """What pods may do that load models, and those that publish them."""
    actions = _PUBLISH if publishes else _LOAD
    return [
        allow(["s3:ListBucket"], arn(f"s3:::{bucket}")),
        allow(actions, arn(f"s3:::{bucket}/*")),
    ]


def _make(name: str, settings: ModelCacheSettings, parent: pulumi.Resource) -> pulumi.Output[str]:
    """The bucket and what guards it; both outlive the stack where `settings.retain` says so."""
    child = pulumi.ResourceOptions(parent=parent, retain_on_delete=settings.retain)
    bucket = aws.s3.Bucket(name, bucket=settings.bucket, tags=stack_tags(name), opts=child)
    aws.s3.BucketPublicAccessBlock(
        name,
        bucket=bucket.bucket,
        block_public_acls=True,
        block_public_policy=True,
        ignore_public_acls=True,
        restrict_public_buckets=True,
        opts=child,
    )
    aws.s3.BucketServerSideEncryptionConfiguration(
        name,
        bucket=bucket.bucket,
        rules=[{"apply_server_side_encryption_by_default": {"sse_algorithm": "AES256"}}],
        opts=child,
    )
    aws.s3.BucketVersioning(name, bucket=bucket.bucket, versioning_configuration={"status": "Enabled"}, opts=child)
    aws.s3.BucketLifecycleConfiguration(name, bucket=bucket.bucket, rules=_lifecycle_rules(), opts=child)
    aws.s3.BucketPolicy(name, bucket=bucket.bucket, policy=bucket.bucket.apply(_tls_only), opts=child)
    return bucket.bucket


def restrict_endpoint(
    name: str, bucket: pulumi.Input[str], endpoint_id: pulumi.Input[str], parent: pulumi.Resource
) -> None:
    """Register the policy that leaves a VPC's S3 endpoint the bucket, and what nodes read from S3 of their region."""
    aws.ec2.VpcEndpointPolicy(
        name,
        vpc_endpoint_id=endpoint_id,
        policy=pulumi.Output.from_input(bucket).apply(_endpoint_policy),
        opts=pulumi.ResourceOptions(parent=parent),
    )


def _endpoint_policy(bucket: str) -> str:
    models = [arn(f"s3:::{bucket}"), arn(f"s3:::{bucket}/*")]
    needed = [arn(f"s3:::{one.format(region=aws.config.region)}/*") for one in _NODE_BUCKETS]
    everybody: Statement = {"Principal": "*"}
    return policy_document([allow("s3:*", models) | everybody, allow("s3:GetObject", needed) | everybody])


def _lifecycle_rules() -> list[aws.s3.BucketLifecycleConfigurationRuleArgsDict]:
    return [
        {
            "id": "old-versions-and-unfinished-uploads",
            "status": "Enabled",
            "filter": {},
            "noncurrent_version_expiration": {"noncurrent_days": _OLD_VERSIONS_DAYS},
            "abort_incomplete_multipart_upload": {"days_after_initiation": _UNFINISHED_UPLOADS_DAYS},
        }
    ]


def _tls_only(bucket: str) -> str:
    return policy_document([deny_without_tls("s3", [arn(f"s3:::{bucket}"), arn(f"s3:::{bucket}/*")])])
