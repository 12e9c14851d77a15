"""What look-ups answer, and which faults in a stack file they find, over real HTTP against the stand-in."""

from dataclasses import replace

import pytest

from components.faults import ConfigurationError
from components.lookups import zones
from components.lookups.addons import AddonVersion, addon_version, addon_versions
from components.lookups.ami import pinned_ami, recommended_ami
from components.lookups.aws import Aws, AwsError
from components.lookups.clusters import eks_cluster
from components.lookups.instances import instance_type_differences
from components.lookups.quotas import live_quotas, used_by_others_vcpus
from components.lookups.reservations import reservation_zone_id
from components.lookups.zones import (
    Subnet,
    subnets,
    subnets_in_zones,
    subnets_of_vpc,
    zone_ids_for_clusters,
    zone_ids_offering,
)
from components.platform_checks import driver_faults
from neuron.ami import parse_release
from neuron.images import image_line
from neuron.instances import INSTANCE_TYPES, InstanceType, instance_type
from neuron.quota import QUOTA_CODES, Bucket, Quota
from stand_ins.aws_api import MOTO, AwsStandIn, Reply, ec2_error, ec2_page, json_error, json_reply
from tests.aws.conftest import put_public_parameter

TRN = Bucket("trn", "on-demand")
INF = Bucket("inf", "on-demand")
OWN_TAGS = {"neuron-serving:stack": "workshop"}
RESERVATION = ec2_page(
    "DescribeCapacityReservations",
    "capacityReservationSet",
    [{"instanceType": "trn1.2xlarge", "totalInstanceCount": 2, "availabilityZoneId": "usw2-az4"}],
)
FOLDER = "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/neuron"


def faults(error: pytest.ExceptionInfo[ConfigurationError]) -> str:
    """The only line of a configuration error."""
    message = str(error.value)
    assert "\n" not in message
    return message


# Zones and subnets. moto has the offerings that EC2 stated.


@pytest.fixture
def three_regions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer regions to ask: moto takes its time to make each."""
    monkeypatch.setattr(zones, "NEURON_REGIONS", ("us-east-2", "us-west-2", "ap-south-2"))


def test_zones_that_offer_a_type_are_found_by_their_ids(aws: Aws) -> None:
    assert zone_ids_offering(aws, "nodeGroups[0].instanceType", "trn1.2xlarge") == {"usw2-az1", "usw2-az4"}


@pytest.mark.usefixtures("three_regions")
def test_a_type_that_no_zone_offers_is_named_with_the_regions_that_do(aws: Aws) -> None:
    with pytest.raises(ConfigurationError) as error:
        zone_ids_offering(aws, "nodeGroups[0].instanceType", "trn2.48xlarge")
    assert faults(error) == (
        "nodeGroups[0].instanceType: found trn2.48xlarge, which no zone of us-west-2 offers; allowed: a type that "
        "us-west-2 offers, or a region that offers this one: us-east-2, ap-south-2; fix: change the type, or aws:region"
    )


@pytest.mark.usefixtures("three_regions")
def test_a_region_that_does_not_answer_is_left_out_of_the_hint(stand_in: AwsStandIn, aws: Aws) -> None:
    not_enabled = ec2_error("AuthFailure", "AWS was not able to validate the provided access credentials", 401)
    stand_in.reply("DescribeInstanceTypeOfferings", MOTO, not_enabled, MOTO)
    with pytest.raises(ConfigurationError, match="offers this one: ap-south-2; fix"):
        zone_ids_offering(aws, "nodeGroups[0].instanceType", "trn2.48xlarge")


def test_offerings_on_later_pages_count(stand_in: AwsStandIn, aws: Aws) -> None:
    pages = [
        ec2_page(
            "DescribeInstanceTypeOfferings",
            "instanceTypeOfferingSet",
            [{"instanceType": "trn1.2xlarge", "locationType": "availability-zone-id", "location": zone_id}],
            next_token,
        )
        for zone_id, next_token in [("usw2-az1", "second"), ("usw2-az2", "third"), ("usw2-az4", "")]
    ]
    stand_in.reply("DescribeInstanceTypeOfferings", *pages)
    assert zone_ids_offering(aws, "path", "trn1.2xlarge") == {"usw2-az1", "usw2-az2", "usw2-az4"}
    assert stand_in.calls["DescribeInstanceTypeOfferings"] == 3


@pytest.fixture
def vpc_id(empty_account: Aws) -> str:
    """A VPC with a public subnet in 2a (a route table of its own) and private ones in 2a and 2b (the main table)."""
    ec2 = empty_account.ec2
    vpc_id = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    public, *_ = (
        ec2.create_subnet(VpcId=vpc_id, CidrBlock=f"10.0.{index}.0/24", AvailabilityZone=f"us-west-2{zone}")
        for index, zone in enumerate("aab")
    )
    gateway_id = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway_id, VpcId=vpc_id)
    table_id = ec2.create_route_table(VpcId=vpc_id)["RouteTable"]["RouteTableId"]
    ec2.create_route(RouteTableId=table_id, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway_id)
    ec2.associate_route_table(RouteTableId=table_id, SubnetId=public["Subnet"]["SubnetId"])
    return vpc_id


def test_subnets_of_a_vpc_have_zone_ids_free_addresses_and_a_way_out(aws: Aws, vpc_id: str) -> None:
    found = subnets_of_vpc(aws, vpc_id)
    zone_ids = {zone["ZoneName"]: zone["ZoneId"] for zone in aws.ec2.describe_availability_zones()["AvailabilityZones"]}
    assert sorted((one.zone, one.public) for one in found) == [
        ("us-west-2a", False),
        ("us-west-2a", True),
        ("us-west-2b", False),
    ]
    assert {one.zone_id for one in found} == {zone_ids["us-west-2a"], zone_ids["us-west-2b"]}
    assert {(one.vpc_id, one.free_addresses) for one in found} == {(vpc_id, 251)}


def test_an_internet_gateway_in_the_main_table_makes_every_other_subnet_public(aws: Aws, vpc_id: str) -> None:
    tables = aws.ec2.describe_route_tables(Filters=[{"Name": "vpc-id", "Values": [vpc_id]}])["RouteTables"]
    (main,) = (one["RouteTableId"] for one in tables if any(link["Main"] for link in one["Associations"]))
    gateway_id = aws.ec2.describe_internet_gateways(Filters=[{"Name": "attachment.vpc-id", "Values": [vpc_id]}])[
        "InternetGateways"
    ][0]["InternetGatewayId"]
    aws.ec2.create_route(RouteTableId=main, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway_id)
    assert all(one.public for one in subnets_of_vpc(aws, vpc_id))


def test_subnets_come_in_the_order_of_their_ids_and_missing_ones_are_named(aws: Aws, vpc_id: str) -> None:
    ids = [one.id for one in reversed(subnets_of_vpc(aws, vpc_id))]
    assert [one.id for one in subnets(aws, "cluster.subnetIds", ids)] == ids
    with pytest.raises(ConfigurationError) as error:
        subnets(aws, "cluster.subnetIds", [ids[0], "subnet-gone", "subnet-typo"])
    assert "cluster.subnetIds: found subnet-gone, subnet-typo; allowed: ids of subnets that exist" in faults(error)


PRIVATE = Subnet("subnet-1", "vpc-1", "us-west-2a", "usw2-az1", 200, public=False)
PUBLIC = replace(PRIVATE, id="subnet-2", public=True)
ELSEWHERE = replace(PRIVATE, id="subnet-3", zone_id="usw2-az2")
FULL = replace(PRIVATE, id="subnet-4", free_addresses=0)


@pytest.mark.parametrize(
    ("candidates", "chosen"),
    [
        ([PUBLIC, PRIVATE, ELSEWHERE, FULL], (PRIVATE,)),
        ([PUBLIC, ELSEWHERE, FULL], (PUBLIC,)),
    ],
)
def test_nodes_go_to_private_subnets_with_room_in_the_right_zones(
    candidates: list[Subnet], chosen: tuple[Subnet, ...]
) -> None:
    assert subnets_in_zones("path", "trn1.2xlarge", candidates, {"usw2-az1", "usw2-az4"}) == chosen


def test_subnets_in_the_wrong_zones_are_shown_beside_the_right_ones() -> None:
    with pytest.raises(ConfigurationError) as error:
        subnets_in_zones("cluster.subnetIds", "trn1.2xlarge", [ELSEWHERE, FULL], {"usw2-az4", "usw2-az1"})
    assert faults(error) == (
        "cluster.subnetIds: found subnet-3 in usw2-az2 (200 free), subnet-4 in usw2-az1 (0 free); allowed: a subnet "
        "with free addresses in a zone that offers trn1.2xlarge: usw2-az1, usw2-az4; "
        "fix: add a subnet in one of these zones"
    )


# AMI releases.


def put_release(entry: str, version: str, image_id: str) -> None:
    """The parameters of one AMI release, as EKS publishes them."""
    put_public_parameter(f"{FOLDER}/{entry}/image_id", image_id)
    put_public_parameter(f"{FOLDER}/{entry}/release_version", version)


@pytest.fixture
def releases(empty_account: Aws) -> Aws:
    """An account whose region has twelve releases, more than one page of parameters, the newest recommended."""
    for day in range(10, 22):
        version = f"1.36.2-202606{day}"
        put_release(f"amazon-eks-node-al2023-x86_64-neuron-1.36-v202606{day}", version, f"ami-{day}")
    put_release("recommended", "1.36.2-20260621", "ami-21")
    return empty_account


def test_the_recommended_release_is_resolved(releases: Aws) -> None:
    found = recommended_ami(releases, "nodeGroups[0].amiRelease", "1.36")
    assert (found.image_id, str(found.release)) == ("ami-21", "1.36.2-20260621")


def test_a_version_without_a_neuron_ami_is_named(releases: Aws) -> None:
    with pytest.raises(
        ConfigurationError, match=r"^cluster.version: found Kubernetes 1.29; allowed: a version for which"
    ):
        recommended_ami(releases, "cluster.version", "1.29")


def test_a_pinned_release_is_found(releases: Aws) -> None:
    assert pinned_ami(releases, "nodeGroups[0].amiRelease", "1.36", "1.36.2-20260615").image_id == "ami-15"


def test_a_release_that_is_pinned_by_its_date_gets_its_version(releases: Aws) -> None:
    found = pinned_ami(releases, "nodeGroups[0].amiRelease", "1.36", "20260615")
    assert (found.image_id, str(found.release)) == ("ami-15", "1.36.2-20260615")


def test_a_date_whose_version_is_not_published_cannot_be_a_pin(empty_account: Aws) -> None:
    put_public_parameter(f"{FOLDER}/amazon-eks-node-al2023-x86_64-neuron-1.36-v20260615/image_id", "ami-15")
    with pytest.raises(ConfigurationError, match=r"publishes the AMI but not the version; .*; fix: pin the version$"):
        pinned_ami(empty_account, "nodeGroups[0].amiRelease", "1.36", "20260615")


def test_a_pin_whose_version_parameter_is_not_published_is_taken_at_its_word(empty_account: Aws) -> None:
    put_public_parameter(f"{FOLDER}/amazon-eks-node-al2023-x86_64-neuron-1.36-v20260615/image_id", "ami-15")
    assert pinned_ami(empty_account, "nodeGroups[0].amiRelease", "1.36", "1.36.2-20260615").image_id == "ami-15"


@pytest.mark.parametrize(
    ("pin", "nearest"),
    [
        # After the last one, and on the second page of parameters.
        ("1.36.2-20260903", "1.36.2-20260621"),
        ("1.36.2-20260501", "1.36.2-20260610"),
        # The date is right, the patch version is not.
        ("1.36.1-20260615", "1.36.2-20260615"),
        ("20260903", "1.36.2-20260621"),
    ],
)
def test_a_release_that_does_not_exist_is_named_with_the_nearest(releases: Aws, pin: str, nearest: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        pinned_ami(releases, "nodeGroups[0].amiRelease", "1.36", pin)
    assert faults(error) == (
        f"nodeGroups[0].amiRelease: found {pin}, which does not exist; allowed: a release of the Neuron AMI for "
        f"Kubernetes 1.36 in us-west-2; fix: set {nearest}, the nearest"
    )


def test_without_permission_to_list_the_nearest_is_left_out(stand_in: AwsStandIn, releases: Aws) -> None:
    stand_in.reply("GetParametersByPath", json_error("AccessDeniedException", "not authorized"))
    with pytest.raises(ConfigurationError, match="fix: leave it out"):
        pinned_ami(releases, "nodeGroups[0].amiRelease", "1.36", "1.36.2-20260903")


@pytest.mark.parametrize("pin", ["latest", "1.36.2-20269999", "1.35.6-20260615"])
def test_a_pin_of_another_form_or_version_asks_nobody(stand_in: AwsStandIn, releases: Aws, pin: str) -> None:
    with pytest.raises(ConfigurationError, match=f"found {pin}; allowed: a release such as 1.36.2-20260714"):
        pinned_ami(releases, "nodeGroups[0].amiRelease", "1.36", pin)
    assert not stand_in.calls


def test_a_release_whose_driver_refuses_the_image_is_a_fault_with_the_last_good_one() -> None:
    (fault,) = driver_faults("nodeGroups[0].amiRelease", image_line("nxdi-0.13"), parse_release("1.36.2-20260714"))
    assert str(fault) == (
        "nodeGroups[0].amiRelease: found AMI release 1.36.2-20260714 has driver 2.29.0, nxdi-0.13 needs 2.28 or older; "
        "allowed: a release with a driver in that range; fix: pin the release of 20260625, the newest known one"
    )


@pytest.mark.parametrize("version", ["1.36.2-20260625", "1.36.3-20260903"])
def test_a_good_or_an_unknown_driver_is_no_fault(version: str) -> None:
    assert driver_faults("path", image_line("nxdi-0.13"), parse_release(version)) == ()


# Clusters. moto makes them, without a control plane.


@pytest.fixture
def cluster(aws: Aws, vpc_id: str) -> Aws:
    """An account with one cluster, in two subnets."""
    subnet_ids = [one.id for one in subnets_of_vpc(aws, vpc_id)][:2]
    aws.eks.create_cluster(
        name="workshop",
        version="1.35",
        roleArn="arn:aws:iam::123456789012:role/cluster",
        resourcesVpcConfig={"subnetIds": subnet_ids},
    )
    return aws


def test_a_cluster_is_found_with_its_version_and_subnets(cluster: Aws) -> None:
    found = eks_cluster(cluster, "cluster.name", "workshop")
    assert (found.name, found.version, len(found.subnet_ids)) == ("workshop", "1.35", 2)
    assert found.endpoint.startswith("https://")
    assert found.certificate_authority


def test_a_cluster_that_does_not_exist_is_named_with_those_that_do(cluster: Aws) -> None:
    with pytest.raises(ConfigurationError) as error:
        eks_cluster(cluster, "cluster.name", "workshp")
    assert faults(error) == (
        "cluster.name: found workshp; allowed: an EKS cluster in us-west-2: workshop; "
        "fix: correct the name or aws:region"
    )


def test_a_cluster_that_is_being_made_or_deleted_is_refused(stand_in: AwsStandIn, aws: Aws) -> None:
    stand_in.reply("/clusters/workshop", json_reply({"cluster": {"name": "workshop", "status": "DELETING"}}))
    with pytest.raises(ConfigurationError, match="found workshop, whose status is DELETING; "):
        eks_cluster(aws, "cluster.name", "workshop")


def test_the_zones_for_clusters_are_known_by_their_ids(aws: Aws) -> None:
    assert zone_ids_for_clusters(aws) == ("usw2-az1", "usw2-az2", "usw2-az3", "usw2-az4")


def test_a_reservation_says_its_zone(stand_in: AwsStandIn, aws: Aws) -> None:
    stand_in.reply("DescribeCapacityReservations", RESERVATION)
    assert reservation_zone_id(aws, "path", "cr-0a", "trn1.2xlarge", 2) == "usw2-az4"


@pytest.mark.parametrize(("instance_type", "nodes"), [("trn1.32xlarge", 1), ("trn1.2xlarge", 3)])
def test_a_reservation_of_another_type_or_too_small_is_refused(
    stand_in: AwsStandIn, aws: Aws, instance_type: str, nodes: int
) -> None:
    stand_in.reply("DescribeCapacityReservations", RESERVATION)
    with pytest.raises(ConfigurationError, match=r"found cr-0a, of 2 x trn1\.2xlarge; allowed: a reservation of"):
        reservation_zone_id(aws, "path", "cr-0a", instance_type, nodes)


def test_a_reservation_that_does_not_exist_is_said_so(stand_in: AwsStandIn, aws: Aws) -> None:
    stand_in.reply("DescribeCapacityReservations", ec2_error("InvalidCapacityReservationId.NotFound", "no", 400))
    with pytest.raises(ConfigurationError, match="found cr-0a, which does not exist; "):
        reservation_zone_id(aws, "path", "cr-0a", "trn1.2xlarge", 1)


# Add-ons. moto knows no versions; the documents have EKS's form.


def addon_page(*versions: tuple[str, bool], next_token: str | None = None) -> dict[str, object]:
    """A page of DescribeAddonVersions for coredns on Kubernetes 1.36; with each version, whether it is the default."""
    infos = [
        {
            "addonVersion": version,
            "compatibilities": [{"clusterVersion": "1.36", "platformVersions": ["*"], "defaultVersion": default}],
        }
        for version, default in versions
    ]
    page: dict[str, object] = {"addons": [{"addonName": "coredns", "addonVersions": infos}]}
    return page | ({"nextToken": next_token} if next_token else {})


@pytest.fixture
def coredns(stand_in: AwsStandIn, aws: Aws) -> Aws:
    """An account whose EKS offers three versions of coredns in two pages, the default in the second."""
    first = json_reply(addon_page(("v1.13.2-eksbuild.9", False), ("v1.13.2-eksbuild.10", False), next_token="more"))  # noqa: S106
    stand_in.reply("DescribeAddonVersions", first, json_reply(addon_page(("v1.13.1-eksbuild.1", True))))
    return aws


def test_versions_are_sorted_by_their_numbers_over_all_pages(coredns: Aws) -> None:
    assert [one.version for one in addon_versions(coredns, "coredns", "1.36")] == [
        "v1.13.2-eksbuild.10",
        "v1.13.2-eksbuild.9",
        "v1.13.1-eksbuild.1",
    ]


def test_without_a_pin_the_default_is_taken(coredns: Aws) -> None:
    expected = AddonVersion("coredns", "v1.13.1-eksbuild.1", default=True)
    assert addon_version(coredns, "cluster.addons.coredns", "coredns", "1.36") == expected


def test_a_pin_that_is_offered_is_taken(coredns: Aws) -> None:
    found = addon_version(coredns, "cluster.addons.coredns", "coredns", "1.36", "v1.13.2-eksbuild.9")
    assert (found.version, found.default) == ("v1.13.2-eksbuild.9", False)


def test_a_pin_that_is_not_offered_is_shown_beside_those_that_are(coredns: Aws) -> None:
    with pytest.raises(ConfigurationError) as error:
        addon_version(coredns, "cluster.addons.coredns", "coredns", "1.36", "v1.9.3-eksbuild.1")
    assert faults(error) == (
        "cluster.addons.coredns: found coredns v1.9.3-eksbuild.1, which EKS does not offer for Kubernetes 1.36; "
        "allowed: v1.13.2-eksbuild.10, v1.13.2-eksbuild.9, v1.13.1-eksbuild.1; fix: set v1.13.1-eksbuild.1"
    )


@pytest.mark.parametrize(
    "reply",
    [
        json_reply({"addons": []}),
        json_error("InvalidParameterException", "Addon specified is not supported"),
    ],
)
def test_an_add_on_that_eks_does_not_know_is_named(stand_in: AwsStandIn, aws: Aws, reply: Reply) -> None:
    stand_in.reply("DescribeAddonVersions", reply)
    with pytest.raises(
        ConfigurationError, match=r"cluster.addons: found cordns for Kubernetes 1.36, which EKS does not"
    ):
        addon_version(aws, "cluster.addons", "cordns", "1.36")


def test_a_refusal_is_not_mistaken_for_an_unknown_add_on(stand_in: AwsStandIn, aws: Aws) -> None:
    stand_in.reply("DescribeAddonVersions", json_error("AccessDeniedException", "not authorized", 403))
    with pytest.raises(AwsError, match="allow the IAM action eks:DescribeAddonVersions"):
        addon_version(aws, "cluster.addons", "coredns", "1.36")


# Instance types. moto has what EC2 stated.


@pytest.mark.parametrize("instance", INSTANCE_TYPES.values(), ids=INSTANCE_TYPES.keys())
def test_the_table_says_what_ec2_states(aws: Aws, instance: InstanceType) -> None:
    assert instance_type_differences(aws, instance) == ()


def test_a_wrong_fact_is_found(aws: Aws) -> None:
    wrong = replace(instance_type("trn1.2xlarge"), chips=2, device_memory_gib=64, nvme_gb=0)
    assert [str(one) for one in instance_type_differences(aws, wrong)] == [
        "trn1.2xlarge: EC2 states instance store in GB 474, neuron.instances has 0",
        "trn1.2xlarge: EC2 states Neuron chips 1, neuron.instances has 2",
        "trn1.2xlarge: EC2 states cores of all chips 2, neuron.instances has 4",
        "trn1.2xlarge: EC2 states Neuron memory in GiB 32, neuron.instances has 64",
    ]


def test_a_type_that_ec2_does_not_know_is_told_by_its_code(aws: Aws) -> None:
    with pytest.raises(AwsError) as error:
        instance_type_differences(aws, replace(instance_type("trn1.2xlarge"), name="trn9.large"))
    assert error.value.code == "InvalidInstanceType"


# Quotas. moto runs the instances; quotas and reservations are documents of AWS's form.


def quota_reply(vcpus: float) -> Reply:
    """A quota as Service Quotas gives it."""
    return json_reply({"Quota": {"ServiceCode": "ec2", "QuotaCode": QUOTA_CODES[TRN], "Value": vcpus}})


def run(aws: Aws, name: str, count: int = 1, *, spot: bool = False, tags: dict[str, str] | None = None) -> list[str]:
    """Run instances of a type and give their ids."""
    answer = aws.ec2.run_instances(
        ImageId="ami-12c6146b",
        InstanceType=name,  # type: ignore[arg-type]
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
