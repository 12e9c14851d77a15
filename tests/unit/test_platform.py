"""Pure parts of the layers below serving: zones, networks, launch templates, charts and their values."""

import base64
from dataclasses import replace
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pytest

from components.accelerator import chart_values, recovery_statements
from components.charts import CHARTS, Chart, ChartSource, chart_source
from components.network import MAXIMUM_ZONES, subnet_cidrs
from components.nodegroup import launch_template
from components.plans import AcceleratorPlan
from components.platform import NodeGroupPlan, vpc_zone_ids, wanted_addons
from components.settings.accelerator import AcceleratorSettings
from components.settings.charts import ChartsSettings
from components.settings.cluster import AddonsSettings, CreatedCluster, ExistingCluster
from components.settings.node_groups import CreateSettings
from neuron.ami import parse_release
from neuron.instances import instance_type

PLAN = NodeGroupPlan(
    name="trainium",
    instance=instance_type("trn1.2xlarge"),
    nodes=1,
    create=CreateSettings(),
    release=parse_release("1.36.2-20260625"),
    zone_ids=("usw2-az4",),
    subnet_ids=(),
)
ACCELERATOR = AcceleratorPlan(AcceleratorSettings(), ChartsSettings(), scheduler_extension=False)


def node_group(**create: Any) -> NodeGroupPlan:
    return replace(PLAN, create=CreateSettings.model_validate(create))


def accelerator(**settings: Any) -> AcceleratorPlan:
    return replace(ACCELERATOR, settings=AcceleratorSettings.model_validate(settings))


@pytest.mark.parametrize(
    ("offering", "usable", "chosen"),
    [
        # Those that offer the type first, filled up to three.
        ([("az4",)], ("az1", "az2", "az3", "az4"), ("az4", "az1", "az2")),
        # Those that offer most types first.
        ([("az3", "az4"), ("az2", "az4")], ("az1", "az2", "az3", "az4"), ("az4", "az2", "az3")),
        # Every type has a zone, even beyond three.
        ([("a", "b", "c"), ("a", "b", "c"), ("d",)], ("a", "b", "c", "d"), ("a", "b", "c", "d")),
        # A zone that takes no control plane comes after those that do, unless it is the only one with the type.
        ([("az3",)], ("az1", "az2"), ("az3", "az1", "az2")),
        ([], ("az1", "az2"), ("az1", "az2")),
    ],
)
def test_a_new_vpc_has_the_zones_that_offer_the_types(
    offering: list[tuple[str, ...]], usable: tuple[str, ...], chosen: tuple[str, ...]
) -> None:
    assert vpc_zone_ids(offering, usable) == chosen


@pytest.mark.parametrize("cidr", ["10.0.0.0/16", "10.0.16.0/20"])
def test_subnets_fill_the_network_without_overlap_and_adding_a_zone_moves_none(cidr: str) -> None:
    cidrs = subnet_cidrs(cidr, MAXIMUM_ZONES)
    networks = [IPv4Network(one) for pair in cidrs for one in (pair.private, pair.public)]
    assert all(one.subnet_of(IPv4Network(cidr)) for one in networks)
    assert not [(one, two) for one in networks for two in networks if one is not two and one.overlaps(two)]
    assert subnet_cidrs(cidr, 2) == cidrs[:2]


def test_a_vpc_without_room_for_the_zones_is_refused() -> None:
    with pytest.raises(ValueError, match="8 zones; a VPC made here has room for 7"):
        subnet_cidrs("10.0.0.0/16", 8)


def test_a_cluster_made_here_gets_the_add_ons_that_it_needs_and_another_only_the_stated_ones() -> None:
    stated = AddonsSettings.model_validate({"coredns": "v1.12.0-eksbuild.1"})
    created = CreatedCluster.model_validate(
        {"mode": "create", "version": "1.36", "publicAccessCidrs": [], "addons": stated.stated()}
    )
    assert wanted_addons(created) == {
        "vpc-cni": "default",
        "kube-proxy": "default",
        "eks-pod-identity-agent": "default",
        "coredns": "v1.12.0-eksbuild.1",
        "metrics-server": "default",
        "aws-mountpoint-s3-csi-driver": "default",
    }
    secrets = "aws-secrets-store-csi-driver-provider"
    assert wanted_addons(created, secrets_store=True) == wanted_addons(created) | {secrets: "default"}
    existing = ExistingCluster.model_validate({"mode": "existing", "name": "one"})
    assert wanted_addons(existing, secrets_store=True) == {}


@pytest.mark.parametrize(("throughput", "iops"), [(125, 3000), (600, 3000), (1000, 4000)])
def test_a_disk_has_the_operations_that_its_throughput_needs(throughput: int, iops: int) -> None:
    template: Any = launch_template(node_group(diskThroughputMibPerSecond=throughput))
    (disk,) = template.block_device_mappings
    assert disk.ebs.iops == iops


def test_the_user_data_of_a_node_with_nvme_puts_the_image_there() -> None:
    encoded = launch_template(PLAN).user_data
    assert isinstance(encoded, str)
    assert "strategy: RAID0" in base64.b64decode(encoded).decode()


def test_a_capacity_block_is_bought_by_the_launch_template_with_its_type() -> None:
    template = launch_template(node_group(purchase="capacity-block", reservationId="cr-0a1b"))
    assert template.instance_type == "trn1.2xlarge"
    assert template.instance_market_options.market_type == "capacity-block"  # type: ignore[union-attr]
    specification = template.capacity_reservation_specification
    assert specification.capacity_reservation_target.capacity_reservation_id == "cr-0a1b"  # type: ignore[union-attr]


def test_a_capacity_reservation_is_named_and_bought_on_demand() -> None:
    template = launch_template(node_group(purchase="capacity-reservation", reservationId="cr-0a1b"))
    assert template.instance_market_options is None
    assert template.instance_type is None
    assert template.capacity_reservation_specification is not None


@pytest.mark.parametrize(
    ("chart", "settings", "source"),
    [
        (CHARTS["neuron"], {}, ChartSource("oci://public.ecr.aws/neuron/neuron-helm-chart", "1.10.0")),
        (
            CHARTS["neuron"],
            {"mirror": "oci://registry.example.com/charts/"},
            ChartSource("oci://registry.example.com/charts/neuron-helm-chart", "1.10.0"),
        ),
        (CHARTS["neuron"], {"folder": "/charts"}, ChartSource("/charts/neuron-helm-chart")),
        (
            Chart("keda", "https://kedacore.github.io/charts", "2.20.2"),
            {},
            ChartSource("keda", "2.20.2", "https://kedacore.github.io/charts"),
        ),
    ],
)
def test_a_chart_comes_from_its_repository_a_mirror_or_a_folder(
    chart: Chart, settings: dict[str, str], source: ChartSource, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("pulumi.get_root_directory", lambda: str(tmp_path))
    assert chart_source(chart, ChartsSettings.model_validate(settings)) == source


@pytest.mark.parametrize("devices", ["device-plugin", "dra"])
def test_device_plugin_and_dra_exclude_each_other(devices: str) -> None:
    values = chart_values(accelerator(devices=devices))
    assert values["devicePlugin"]["enabled"] is (devices == "device-plugin")
    assert values["draDriver"]["enabled"] is (devices == "dra")


def test_the_scheduler_extension_comes_with_a_scheduler_of_the_stated_image() -> None:
    plan = replace(
        accelerator(kubeSchedulerImage="registry.example.com:5000/kube-scheduler:v1.35.2-eks-1-35-8"),
        scheduler_extension=True,
    )
    scheduler = chart_values(plan)["scheduler"]
    assert scheduler["enabled"] is True
    assert scheduler["customScheduler"]["image"] == {
        "repository": "registry.example.com:5000/kube-scheduler",
        "tag": "v1.35.2-eks-1-35-8",
    }
    assert chart_values(ACCELERATOR)["scheduler"] == {"enabled": False}


@pytest.mark.parametrize(
    ("mode", "detects", "recovers"), [("none", False, False), ("detect", True, False), ("recover", True, True)]
)
def test_the_node_problem_detector_detects_and_recovers_as_stated(mode: str, detects: bool, recovers: bool) -> None:
    detector = chart_values(accelerator(nodeProblemDetector=mode))["npd"]
    assert detector == {"enabled": detects, "nodeRecovery": {"enabled": recovers}}


def test_the_recovery_may_replace_nodes_of_its_own_cluster_alone() -> None:
    changing = [one for one in recovery_statements("mine") if "autoscaling:SetInstanceHealth" in str(one["Action"])]
    assert [one["Condition"] for one in changing] == [{"StringEquals": {"aws:ResourceTag/eks:cluster-name": "mine"}}]


def test_the_addon_of_cloudwatch_is_installed_only_where_it_is_named() -> None:
    name = "amazon-cloudwatch-observability"
    created = CreatedCluster.model_validate({"mode": "create", "version": "1.36", "publicAccessCidrs": []})
    named = created.model_copy(update={"addons": AddonsSettings.model_validate({name: "default"})})
    assert name not in wanted_addons(created)
    assert wanted_addons(named) == wanted_addons(created) | {name: "default"}
