"""Quotas and their use, over real HTTP: moto runs the instances; quotas and reservations are documents of AWS."""

from typing import TYPE_CHECKING

from components.lookups.aws import Aws
from components.lookups.quotas import live_quotas, used_by_others_vcpus
from neuron.quota import QUOTA_CODES, Bucket, Quota
from stand_ins.aws_api import AwsStandIn, Reply, ec2_page, json_reply

if TYPE_CHECKING:
    from mypy_boto3_ec2.literals import InstanceTypeType

TRN = Bucket("trn", "on-demand")
INF = Bucket("inf", "on-demand")
OWN_TAGS = {"neuron-serving:stack": "workshop"}


def quota_reply(vcpus: float) -> Reply:
    """A quota as Service Quotas gives it."""
    return json_reply({"Quota": {"ServiceCode": "ec2", "QuotaCode": QUOTA_CODES[TRN], "Value": vcpus}})


def run(
    aws: Aws, name: "InstanceTypeType", count: int = 1, *, spot: bool = False, tags: dict[str, str] | None = None
) -> list[str]:
    """Run instances of a type and give their ids."""
    answer = aws.ec2.run_instances(
        ImageId="ami-12c6146b",
        InstanceType=name,
        MinCount=count,
        MaxCount=count,
        InstanceMarketOptions={"MarketType": "spot"} if spot else {},
    )
    ids = [one["InstanceId"] for one in answer["Instances"]]
    if tags:
        aws.ec2.create_tags(Resources=ids, Tags=[{"Key": key, "Value": value} for key, value in tags.items()])
    return ids


def test_an_applied_quota_is_said_to_be_applied(stand_in: AwsStandIn, empty_account: Aws) -> None:
    stand_in.reply("GetServiceQuota", quota_reply(8.0))
    assert live_quotas(empty_account, [TRN], OWN_TAGS) == {TRN: Quota(8, 0, "applied")}
    assert stand_in.calls["GetAWSDefaultServiceQuota"] == 0


def test_an_account_without_a_value_of_its_own_has_the_default(stand_in: AwsStandIn, empty_account: Aws) -> None:
    # moto answers GetServiceQuota with NoSuchResourceException, as AWS does for such an account.
    stand_in.reply("GetAWSDefaultServiceQuota", quota_reply(0.0))
    assert live_quotas(empty_account, [TRN, INF], OWN_TAGS) == {
        TRN: Quota(0, 0, "AWS default"),
        INF: Quota(0, 0, "AWS default"),
    }


def test_use_is_summed_by_family_and_purchase_over_all_pages(stand_in: AwsStandIn, empty_account: Aws) -> None:
    stand_in.instances_per_page = 2
    for _ in range(5):
        run(empty_account, "trn1.2xlarge")
    run(empty_account, "inf2.8xlarge", 2)
    run(empty_account, "inf2.xlarge", spot=True)
    # In the same bucket as inf2, though the table does not have it.
    run(empty_account, "inf1.xlarge")
    run(empty_account, "m5.large")
    assert used_by_others_vcpus(empty_account, OWN_TAGS) == {TRN: 5 * 8, INF: 2 * 32 + 4, Bucket("inf", "spot"): 4}
    assert stand_in.calls["DescribeInstances"] > 2


def test_instances_of_this_stack_and_stopped_ones_are_not_in_use_by_others(empty_account: Aws) -> None:
    run(empty_account, "trn1.2xlarge", tags=OWN_TAGS)
    run(empty_account, "trn1.2xlarge", tags={"neuron-serving:stack": "another"})
    empty_account.ec2.stop_instances(InstanceIds=run(empty_account, "trn1.2xlarge"))
    empty_account.ec2.terminate_instances(InstanceIds=run(empty_account, "trn1.2xlarge"))
    assert used_by_others_vcpus(empty_account, OWN_TAGS) == {TRN: 8}
    assert used_by_others_vcpus(empty_account, {}) == {TRN: 16}


def test_reserved_capacity_counts_whole_and_capacity_blocks_never(stand_in: AwsStandIn, empty_account: Aws) -> None:
    def reservation(kind: str, state: str, total: int, name: str = "trn1.2xlarge") -> dict[str, object]:
        return {"instanceType": name, "reservationType": kind, "state": state, "totalInstanceCount": total}

    pages = [
        [reservation("default", "active", 4), reservation("capacity-block", "active", 64)],
        [reservation("default", "scheduled", 2), reservation("default", "active", 9, "m5.large")],
    ]
    name = "DescribeCapacityReservations"
    first = ec2_page(name, "capacityReservationSet", pages[0], "second")
    stand_in.reply(name, first, ec2_page(name, "capacityReservationSet", pages[1]))
    assert used_by_others_vcpus(empty_account, OWN_TAGS) == {TRN: (4 + 2) * 8}


def test_an_instance_in_reserved_capacity_counts_only_with_its_reservation(stand_in: AwsStandIn, aws: Aws) -> None:
    running = {
        "in a reservation": "<capacityReservationId>cr-1</capacityReservationId>",
        "in a capacity block": "<instanceLifecycle>capacity-block</instanceLifecycle>",
        "on demand": "",
        "spot": "<instanceLifecycle>spot</instanceLifecycle>",
    }
    instances = "".join(f"<item><instanceType>trn1.2xlarge</instanceType>{rest}</item>" for rest in running.values())
    reservation = {"reservationId": "r-1", "instancesSet": instances}
    stand_in.reply("DescribeInstances", ec2_page("DescribeInstances", "reservationSet", [reservation]))
    assert used_by_others_vcpus(aws, OWN_TAGS) == {TRN: 8, Bucket("trn", "spot"): 8}
