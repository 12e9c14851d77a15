"""What each stack costs an hour as its file stands: `python -m tools.costs` prints it and writes it into the runbook.

It counts what runs whether or not anybody asks for a token. What depends on use (traffic, logs, requests, load balancer
units) is named in the runbook beside the table.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import yaml

from components.configuration import parse_settings
from components.nodegroup import DEFAULT_THROUGHPUT_MIB_PER_SECOND, SYSTEM_DISK_GIB
from components.settings import Settings
from components.settings.cluster import CreatedCluster
from components.settings.edge import GATEWAYS
from neuron.instances import INSTANCE_TYPES
from tools.versions import ROOT

_COMMAND = "python -m tools.costs"
RUNBOOK = ROOT / "docs" / "runbook.md"
_BEGIN, _END = f"<!-- costs: written by `{_COMMAND}` -->", "<!-- /costs -->"
_PREFIX = "neuron-serving:"
_HOURS_PER_MONTH = 730

# Public prices in us-east-1 and us-west-2, in USD: EKS, VPC, EBS, KMS and EC2 price pages, 2026-07.
_PER_HOUR: Mapping[str, float] = MappingProxyType(
    {
        "EKS control plane": 0.10,
        "NAT gateway": 0.045,
        "public IPv4 address": 0.005,
        "network load balancer": 0.0225,
        "m7i.large": 0.1008,
    }
)
_KEY_PER_MONTH = 1.0
_GP3_GIB_PER_MONTH = 0.08
_GP3_MIB_PER_SECOND_PER_MONTH = 0.04


@dataclass(frozen=True)
class Item:
    """One line of a stack's bill; the price is of one piece, in USD an hour, None where none is published."""

    name: str
    count: int
    usd_per_hour: float | None


def bill(settings: Settings) -> tuple[Item, ...]:
    """What a stack makes itself; nodes and clusters that others made are on their bill."""
    cluster = list(_cluster(settings.cluster)) if isinstance(settings.cluster, CreatedCluster) else []
    return (*cluster, *_nodes(settings), *_edge(settings))


def total_usd_per_hour(items: tuple[Item, ...]) -> float:
    """The sum of what has a price."""
    return sum(item.count * item.usd_per_hour for item in items if item.usd_per_hour is not None)


def table() -> str:
    """A row for each stack file that is for AWS, in Markdown."""
    rows = "\n".join(f"| `{stack}` | {_sum(items)} | {_month(items)} | {_parts(items)} |" for stack, items in _bills())
    return f"| stack | USD an hour | USD a month | of which, an hour |\n|---|---|---|---|\n{rows}\n"


def with_costs(runbook: str) -> str:
    """The runbook with its table as it should be."""
    before, _, rest = runbook.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}\n{table()}{_END}{after}"


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog=_COMMAND, description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the runbook's table is stale")
    check = parser.parse_args().check
    runbook = RUNBOOK.read_text()
    wanted = with_costs(runbook)
    if check and wanted != runbook:
        print(f"docs/runbook.md is stale; run `{_COMMAND}`")
        return 1
    if not check:
        RUNBOOK.write_text(wanted)
        print(table(), end="")
    return 0


def _cluster(settings: CreatedCluster) -> Iterator[Item]:
    yield Item("EKS control plane", 1, _PER_HOUR["EKS control plane"])
    yield Item("key for secrets", 1, _KEY_PER_MONTH / _HOURS_PER_MONTH)
    if settings.vpc_cidr is not None:
        yield Item("NAT gateway", 1, _PER_HOUR["NAT gateway"])
        yield Item("public IPv4 address", 1, _PER_HOUR["public IPv4 address"])
    system = settings.system_nodes
    yield Item(system.instance_type, system.nodes, _PER_HOUR.get(system.instance_type))
    yield Item(f"gp3 of {SYSTEM_DISK_GIB} GiB", system.nodes, _disk(SYSTEM_DISK_GIB, DEFAULT_THROUGHPUT_MIB_PER_SECOND))


def _nodes(settings: Settings) -> Iterator[Item]:
    for group in settings.node_groups:
        if group.create is None:
            continue
        on_demand = group.create.purchase == "on-demand"
        price = INSTANCE_TYPES[group.instance_type].price_usd_per_hour if on_demand else None
        yield Item(group.instance_type, group.nodes, price)
        disk = _disk(group.create.disk_gib, group.create.disk_throughput_mib_per_second)
        yield Item(f"gp3 of {group.create.disk_gib} GiB", group.nodes, disk)


def _edge(settings: Settings) -> Iterator[Item]:
    """A gateway stands behind one load balancer; without one each server has its own."""
    if settings.edge is None or settings.edge.kind == "none":
        return
    count = 1 if settings.edge.kind in GATEWAYS else len(settings.serving)
    yield Item("network load balancer", count, _PER_HOUR["network load balancer"])


def _disk(gib: int, throughput_mib_per_second: int) -> float:
    """USD an hour. The operations that the throughput needs are in the price (components/nodegroup.py)."""
    extra = max(0, throughput_mib_per_second - DEFAULT_THROUGHPUT_MIB_PER_SECOND)
    return (gib * _GP3_GIB_PER_MONTH + extra * _GP3_MIB_PER_SECOND_PER_MONTH) / _HOURS_PER_MONTH


def _bills() -> Iterator[tuple[str, tuple[Item, ...]]]:
    for path in sorted((ROOT / "stacks").glob("Pulumi.*.yaml")):
        config = yaml.safe_load(path.read_text())["config"]
        if "aws:region" in config:
            yield path.name.split(".")[1], bill(_settings(config))


def _settings(config: Mapping[str, object]) -> Settings:
    return parse_settings(
        {key.removeprefix(_PREFIX): json.dumps(value) for key, value in config.items() if key.startswith(_PREFIX)}
    )


def _sum(items: tuple[Item, ...]) -> str:
    more = " and what has no price here" if any(item.usd_per_hour is None for item in items) else ""
    return f"{total_usd_per_hour(items):.2f}{more}"


def _month(items: tuple[Item, ...]) -> str:
    return f"{total_usd_per_hour(items) * _HOURS_PER_MONTH:.0f}"


def _parts(items: tuple[Item, ...]) -> str:
    def part(item: Item) -> str:
        price = "no price" if item.usd_per_hour is None else f"{item.count * item.usd_per_hour:.3f}"
        return f"{item.count} x {item.name} {price}"

    return "; ".join(map(part, items)) or "nothing: it uses what another stack made"


if __name__ == "__main__":
    sys.exit(main())
