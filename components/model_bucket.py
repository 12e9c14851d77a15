"""The S3 bucket of the model cache: private, encrypted, versioned; and the CSI driver's right to it."""

import json

import pulumi
import pulumi_aws as aws

from components.settings.model_cache import ModelCacheSettings

# https://docs.aws.amazon.com/eks/latest/userguide/s3-csi-create.html: the driver's add-on runs as this account.
_CSI_NAMESPACE, _CSI_SERVICE_ACCOUNT = "kube-system", "s3-csi-driver-sa"
_OLD_VERSIONS_DAYS = 30
_UNFINISHED_UPLOADS_DAYS = 7


def model_bucket(name: str, settings: ModelCacheSettings, parent: pulumi.Resource) -> aws.s3.Bucket:
    """Register the bucket and what guards it; it outlives the stack where `settings.retain` says so."""
    child = pulumi.ResourceOptions(parent=parent)
    bucket = aws.s3.Bucket(
        name,
        bucket=settings.bucket or f"vllm-models-cache-{aws.get_caller_identity().account_id}",
        opts=pulumi.ResourceOptions.merge(child, pulumi.ResourceOptions(retain_on_delete=settings.retain)),
    )
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
    aws.s3.BucketPolicy(name, bucket=bucket.bucket, policy=bucket.arn.apply(_tls_only), opts=child)
    _grant_csi_driver(name, settings, bucket, child)
    return bucket


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


def _grant_csi_driver(
    name: str, settings: ModelCacheSettings, bucket: aws.s3.Bucket, child: pulumi.ResourceOptions
) -> None:
    """Pod Identity of the CSI driver, limited to this bucket."""
    role = aws.iam.Role(name, assume_role_policy=_pod_identity_trust(), opts=child)
    aws.iam.RolePolicy(name, role=role.name, policy=bucket.arn.apply(_bucket_access), opts=child)
    aws.eks.PodIdentityAssociation(
        name,
        cluster_name=settings.cluster_name or "",
        namespace=_CSI_NAMESPACE,
        service_account=_CSI_SERVICE_ACCOUNT,
        role_arn=role.arn,
        opts=child,
    )


def _pod_identity_trust() -> str:
    principal = {"Service": "pods.eks.amazonaws.com"}
    return _policy([{"Effect": "Allow", "Principal": principal, "Action": ["sts:AssumeRole", "sts:TagSession"]}])


def _bucket_access(arn: str) -> str:
    """What Mountpoint needs to list, read and create; not to delete, which nothing here does."""
    objects = ["s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload"]
    return _policy(
        [
            {"Effect": "Allow", "Action": ["s3:ListBucket"], "Resource": arn},
            {"Effect": "Allow", "Action": objects, "Resource": f"{arn}/*"},
        ]
    )


def _tls_only(arn: str) -> str:
    plain = {"Bool": {"aws:SecureTransport": "false"}}
    resources = [arn, f"{arn}/*"]
    return _policy([{"Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": resources, "Condition": plain}])


def _policy(statements: list[dict[str, object]]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": statements})
