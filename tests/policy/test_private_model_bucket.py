"""private-model-bucket: blocks, ACLs and policies, in the bucket and beside it."""

import json
from typing import Any

import pytest
from pulumi_policy.proxy import UNKNOWN_BOOLEAN_VALUE, UNKNOWN_STRING_VALUE

from policy.rules.private_model_bucket import RULE
from tests.policy.fixtures import Props
from tests.policy.judging import Given, judge, judge_stack

CLASSIC = ["aws:s3/bucket:Bucket", "aws:s3/bucketV2:BucketV2"]
COMPLETE = dict.fromkeys(("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets"), True)
BUCKET = Given(CLASSIC[0], {"bucket": "vllm-models-cache-1"}, "models")
POLICY = "aws:s3/bucketPolicy:BucketPolicy"


def block(flags: Props = COMPLETE, bucket: Given | None = BUCKET, name: Any = "vllm-models-cache-1") -> Given:
    dependencies = {"bucket": [bucket]} if bucket else {}
    props = {"bucket": name} | flags
    return Given("aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock", props, "block", dependencies)


def statement(**more: Any) -> Props:
    return {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "*"} | more


@pytest.mark.parametrize("resource_type", CLASSIC)
def test_a_bucket_needs_a_complete_block(resource_type: str) -> None:
    bucket = Given(resource_type, BUCKET.props, "models")
    verdict = judge_stack(RULE, bucket)
    assert f"{resource_type} models: no public access block" in verdict.violations[0]
    assert verdict.urns == (bucket.urn,)
    assert judge_stack(RULE, bucket, block(bucket=bucket)).passed


@pytest.mark.parametrize("flag", COMPLETE)
@pytest.mark.parametrize("value", [False, None])
def test_each_of_the_four_settings_counts(flag: str, value: object) -> None:
    verdict = judge_stack(RULE, BUCKET, block(COMPLETE | {flag: value}))
    assert f"the public access block leaves out {flag}" in verdict.violations[0]


def test_a_block_belongs_to_the_bucket_that_it_depends_on_or_names() -> None:
    assert judge_stack(RULE, BUCKET, block(bucket=None)).passed
    assert judge_stack(RULE, BUCKET, block(name=UNKNOWN_STRING_VALUE)).violations == ()
    other = Given(CLASSIC[0], {"bucket": "other"}, "other")
    assert judge_stack(RULE, other, BUCKET, block()).urns == (other.urn,)
    assert judge_stack(RULE, BUCKET, block(bucket=None, name="elsewhere")).violations


def test_a_block_of_the_whole_account_is_enough() -> None:
    account = Given("aws:s3/accountPublicAccessBlock:AccountPublicAccessBlock", COMPLETE, "account")
    assert judge_stack(RULE, BUCKET, account).passed
    partial = Given(account.type, COMPLETE | {"blockPublicAcls": False}, "account")
    assert judge_stack(RULE, BUCKET, partial).violations


def test_a_native_bucket_holds_its_block() -> None:
    native = Given("aws-native:s3:Bucket", {"publicAccessBlockConfiguration": COMPLETE}, "native")
    assert judge_stack(RULE, native).passed
    assert judge_stack(RULE, Given(native.type, {}, "native")).violations
    lacking = Given(native.type, {"publicAccessBlockConfiguration": {"blockPublicAcls": True}}, "native")
    assert "blockPublicPolicy, ignorePublicAcls, restrictPublicBuckets" in judge_stack(RULE, lacking).violations[0]


def test_directory_buckets_and_other_resources_need_none() -> None:
    assert judge_stack(RULE, Given("aws:s3/directoryBucket:DirectoryBucket", {"bucket": "x--use1-az4--x-s3"})).passed


@pytest.mark.parametrize(
    ("resource_type", "props"),
    [
        ("aws:s3/bucket:Bucket", {"acl": "public-read"}),
        ("aws:s3/bucketV2:BucketV2", {"acl": "public-read-write"}),
        ("aws:s3/bucketAcl:BucketAcl", {"acl": "authenticated-read"}),
        ("aws:s3/bucketAclV2:BucketAclV2", {"acl": "public-read"}),
        ("aws-native:s3:Bucket", {"accessControl": "PublicRead"}),
        ("aws:s3/bucketV2:BucketV2", {"grants": [{"uri": "http://acs.amazonaws.com/groups/global/AllUsers"}]}),
        (
            "aws:s3/bucketAcl:BucketAcl",
            {
                "accessControlPolicy": {
                    "grants": [{"grantee": {"uri": "http://acs.amazonaws.com/groups/global/AuthenticatedUsers"}}]
                }
            },
        ),
    ],
)
def test_a_public_acl_is_a_violation_of_its_own(resource_type: str, props: Props) -> None:
    assert "is public" in judge(RULE, props, resource_type).violations[0]


@pytest.mark.parametrize(
    ("resource_type", "props"),
    [
        ("aws:s3/bucket:Bucket", {"acl": "private"}),
        ("aws:s3/bucketAcl:BucketAcl", {"acl": "log-delivery-write"}),
        ("aws:s3/bucketV2:BucketV2", {"grants": [{"uri": "http://acs.amazonaws.com/groups/s3/LogDelivery"}]}),
        ("aws:s3/bucketAcl:BucketAcl", {"accessControlPolicy": {"grants": [{"grantee": {"id": "1"}}]}}),
    ],
)
def test_other_acls_pass(resource_type: str, props: Props) -> None:
    assert judge(RULE, props, resource_type).passed


@pytest.mark.parametrize(
    "one",
    [
        statement(),
        statement(Principal={"AWS": "*"}),
        statement(Principal={"AWS": ["arn:aws:iam::1:root", "*"]}),
        statement(Condition={"Bool": {"aws:SecureTransport": "true"}}),
        statement(Condition={"IpAddress": {"aws:SourceIp": "0.0.0.0/0"}}),
        statement(Condition={"StringNotEquals": {"aws:PrincipalOrgID": "o-1"}}),
    ],
)
def test_a_statement_that_allows_everyone_is_a_violation(one: Props) -> None:
    for policy in ({"Statement": [one]}, {"Statement": one}):
        assert judge(RULE, {"policy": json.dumps(policy)}, POLICY).violations
        assert judge(RULE, {"policyDocument": policy}, "aws-native:s3:BucketPolicy").violations


@pytest.mark.parametrize(
    "one",
    [
        statement(Effect="Deny", Condition={"Bool": {"aws:SecureTransport": "false"}}),
        statement(Principal={"AWS": "arn:aws:iam::1:role/nodes"}),
        statement(Principal={"Service": "logging.s3.amazonaws.com"}),
        statement(Condition={"StringEquals": {"aws:PrincipalOrgID": "o-1"}}),
        statement(Condition={"StringEquals": {"aws:SourceVpce": "vpce-1"}}),
        statement(Condition={"IpAddress": {"aws:SourceIp": ["10.0.0.0/8"]}}),
        statement(Condition={"ArnLike": {"aws:SourceArn": "arn:aws:cloudfront::1:distribution/x"}}),
    ],
)
def test_a_statement_for_somebody_is_not_public(one: Props) -> None:
    assert judge(RULE, {"policy": json.dumps({"Statement": [one]})}, POLICY).passed


@pytest.mark.parametrize("policy", ["", "no json", "[]", None, '{"Statement": "text"}'])
def test_a_policy_that_cannot_be_read_is_left_to_aws(policy: object) -> None:
    assert judge(RULE, {"policy": policy}, POLICY).passed


def test_unknown_values_are_said_to_be_unjudged_and_break_nothing() -> None:
    verdict = judge(RULE, {"policy": UNKNOWN_STRING_VALUE}, POLICY)
    assert (verdict.violations, verdict.unjudged.count("policy")) == ((), 1)
    verdict = judge_stack(RULE, BUCKET, block(COMPLETE | {"blockPublicAcls": UNKNOWN_BOOLEAN_VALUE}))
    assert (verdict.violations, "blockPublicAcls" in verdict.unjudged) == ((), True)
    verdict = judge_stack(RULE, BUCKET, block(bucket=None, name=UNKNOWN_STRING_VALUE))
    assert (verdict.violations, "block: bucket" in verdict.unjudged) == ((), True)
