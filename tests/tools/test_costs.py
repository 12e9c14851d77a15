"""What a stack costs an hour."""

from collections.abc import Mapping

import pytest

from components.settings import Settings
from tools.costs import RUNBOOK, Item, bill, total_usd_per_hour, with_costs

CREATED = {"mode": "create", "version": "1.36", "public_access_cidrs": ["203.0.113.0/24"], "vpc_cidr": "10.0.0.0/16"}
GROUP = {"name": "inferentia", "instance_type": "inf2.xlarge", "nodes": 2}
EXISTING = {"mode": "existing", "name": "ours"}


def settings(cluster: Mapping[str, object], **create: object) -> Settings:
    group = GROUP | ({"create": create} if create else {})
    return Settings.model_validate({"cluster": cluster, "node_groups": [group]}, by_name=True)


def by_name(items: tuple[Item, ...]) -> dict[str, Item]:
    return {item.name: item for item in items}


def test_nodes_cost_their_type_and_a_disk_with_its_throughput() -> None:
    items = by_name(bill(settings(EXISTING, min_nodes=2)))
    assert items.keys() == {"inf2.xlarge", "gp3 of 100 GiB"}
    assert items["inf2.xlarge"] == Item("inf2.xlarge", 2, 0.7582)
    # 100 GiB at 0.08 and 475 MiB/s at 0.04 a month of 730 hours.
    assert items["gp3 of 100 GiB"].usd_per_hour == pytest.approx(27 / 730)


def test_a_cluster_made_here_costs_its_control_plane_way_out_and_system_nodes() -> None:
    items = by_name(bill(settings(CREATED, min_nodes=2)))
    assert items["EKS control plane"].usd_per_hour == 0.10
    assert items["NAT gateway"].usd_per_hour == 0.045
    assert items["m7i.large"].count == 2


def test_what_others_made_costs_this_stack_nothing() -> None:
    assert bill(settings(EXISTING)) == ()


def test_what_has_no_on_demand_price_has_none_here() -> None:
    block = {"purchase": "capacity-block", "reservation_id": "cr-0123456789abcdef0"}
    items = bill(settings(EXISTING, **block))
    assert by_name(items)["inf2.xlarge"].usd_per_hour is None
    assert total_usd_per_hour(items) == pytest.approx(2 * 27 / 730)


@pytest.mark.parametrize(("kind", "load_balancers"), [("none", 0), ("nlb", 2), ("envoy-gateway", 1)])
def test_a_gateway_has_one_load_balancer_and_without_it_each_server_has_its_own(kind: str, load_balancers: int) -> None:
    values = {
        "cluster": EXISTING,
        "node_groups": [GROUP],
        "edge": {"kind": kind},
        "serving": [server("a"), server("b")],
    }
    items = by_name(bill(Settings.model_validate(values, by_name=True)))
    assert sum(item.count for item in items.values()) == load_balancers


def server(name: str) -> dict[str, object]:
    model = {"id": "TinyLlama/TinyLlama-1.1B-Chat-v1.0", "revision": "f" * 40, "max_model_len": 1024}
    return {
        "name": name,
        "image_line": "nxdi-0.13",
        "node_group": "inferentia",
        "replicas": 1,
        "model": model | {"max_num_seqs": 4, "tensor_parallel": 2},
    }


def test_the_runbook_has_the_costs_of_the_stack_files_as_they_are() -> None:
    text = RUNBOOK.read_text()
    assert with_costs(text) == text
    assert "`workshop` | 1.38 |" in text
