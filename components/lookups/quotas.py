"""The account's vCPU quotas for Neuron instances, and what is in use of them beside this stack.

Sources: EC2 user guide. Quotas count the default vCPUs of a type, whatever an instance's CPU options. On-demand
capacity reservations count whole, used or not, in five of their states; instances in them then do not count again.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from components.lookups.aws import Aws, AwsError
from components.lookups.instances import default_vcpus
from neuron.quota import QUOTA_CODES, Bucket, Quota, QuotaSource

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import InstanceTypeDef

EC2_SERVICE = "ec2"
# The account was never granted a value of its own.
NO_OWN_VALUE = "NoSuchResourceException"
# Bought ahead, and limited by quotas of its own.
CAPACITY_BLOCK = "capacity-block"
COUNTED_RESERVATION_STATES = ("assessing", "scheduled", "pending", "active", "delayed")

_Use = Counter[tuple[Bucket, str]]


def live_quotas(aws: Aws, buckets: Iterable[Bucket], own_tags: Mapping[str, str]) -> dict[Bucket, Quota]:
    """The quotas of these buckets and what others use of them now; AwsError where that may not be read.

    Instances that carry one of `own_tags` are this stack's: they are part of what it needs, not of what others use.
    """
    used = used_by_others_vcpus(aws, own_tags)
    quotas = {}
    for bucket in buckets:
        vcpus, source = _quota_vcpus(aws, bucket)
        quotas[bucket] = Quota(vcpus, used[bucket], source)
    return quotas


def used_by_others_vcpus(aws: Aws, own_tags: Mapping[str, str]) -> Counter[Bucket]:
    """vCPUs of others' running and starting instances, and of all on-demand capacity that is reserved."""
    use = _instances_of_others(aws, own_tags) + _reserved(aws)
    vcpus = default_vcpus(aws, {instance_type for _, instance_type in use})
    total: Counter[Bucket] = Counter()
    for (bucket, instance_type), count in use.items():
        total[bucket] += count * vcpus[instance_type]
    return total


def _quota_vcpus(aws: Aws, bucket: Bucket) -> tuple[int, QuotaSource]:
    code = QUOTA_CODES[bucket]
    try:
        with aws.asking("servicequotas:GetServiceQuota"):
            own = aws.service_quotas.get_service_quota(ServiceCode=EC2_SERVICE, QuotaCode=code)
        return int(own["Quota"]["Value"]), "applied"
    except AwsError as error:
        if error.code != NO_OWN_VALUE:
            raise
    with aws.asking("servicequotas:GetAWSDefaultServiceQuota"):
        default = aws.service_quotas.get_aws_default_service_quota(ServiceCode=EC2_SERVICE, QuotaCode=code)
    return int(default["Quota"]["Value"]), "AWS default"


def _instances_of_others(aws: Aws, own_tags: Mapping[str, str]) -> _Use:
    with aws.asking("ec2:DescribeInstances"):
        pages = aws.ec2.get_paginator("describe_instances").paginate(
            Filters=[{"Name": "instance-state-name", "Values": ["pending", "running"]}]
        )
        found = [one for page in pages for reservation in page["Reservations"] for one in reservation["Instances"]]
    use: _Use = Counter()
    for instance in found:
        bucket = _bucket_of_instance(instance)
        if bucket is not None and not own_tags.items() & _tags(instance).items():
            use[bucket, instance["InstanceType"]] += 1
    return use


def _reserved(aws: Aws) -> _Use:
    with aws.asking("ec2:DescribeCapacityReservations"):
        pages = aws.ec2.get_paginator("describe_capacity_reservations").paginate(
            Filters=[{"Name": "state", "Values": list(COUNTED_RESERVATION_STATES)}]
        )
        found = [one for page in pages for one in page["CapacityReservations"]]
    use: _Use = Counter()
    for reservation in found:
        instance_type = reservation["InstanceType"]
        bucket = _on_demand_bucket(instance_type)
        if bucket is not None and reservation.get("ReservationType") != CAPACITY_BLOCK:
            use[bucket, instance_type] += reservation["TotalInstanceCount"]
    return use


def _bucket_of_instance(instance: "InstanceTypeDef") -> Bucket | None:
    """The bucket that an instance by itself counts against; None for other families and in reserved capacity."""
    on_demand = _on_demand_bucket(instance["InstanceType"])
    lifecycle = instance.get("InstanceLifecycle")
    if on_demand is None or lifecycle == CAPACITY_BLOCK or "CapacityReservationId" in instance:
        return None
    return Bucket(on_demand.family, "spot") if lifecycle == "spot" else on_demand


def _on_demand_bucket(instance_type: str) -> Bucket | None:
    """The bucket by the name alone, for types that the table lacks too: inf1, and what AWS adds later."""
    if instance_type.startswith("inf"):
        return Bucket("inf", "on-demand")
    return Bucket("trn", "on-demand") if instance_type.startswith("trn") else None


def _tags(instance: "InstanceTypeDef") -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in instance.get("Tags", [])}
