"""The account's vCPU quota: what a stack needs of it at its largest, and whether that fits.

Sources: EC2 user guide, "Service Quotas" and "On-Demand Capacity Reservations"; EKS user guide, "Understand each phase
of node updates".
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from neuron.errors import ImpossibleInputError
from neuron.instances import InstanceType, QuotaFamily

# A capacity reservation of on-demand capacity takes its vCPUs from the on-demand quota when it is made, used or not, so
# that instances in it need no more. A capacity block is sold and limited by itself.
Purchase = Literal["on-demand", "spot", "capacity-reservation", "capacity-block"]
QuotaPurchase = Literal["on-demand", "spot"]
# What declares a quota, or what AWS itself says, for the message.
QuotaSource = Literal["declared in the stack file", "declared in the policy configuration", "applied", "AWS default"]

UpdateStrategy = Literal["DEFAULT", "MINIMAL"]

# EKS replaces at most this many nodes of a group at a time.
MAX_UNAVAILABLE_CEILING = 100


@dataclass(frozen=True, order=True)
class Bucket:
    """One quota: vCPUs of all running instances of a family, bought in one way, in one region."""

    family: QuotaFamily
    purchase: QuotaPurchase

    def __str__(self) -> str:
        """As in `trn on-demand`."""
        return f"{self.family} {self.purchase}"


# Service code `ec2`, unit vCPU.
QUOTA_CODES: Mapping[Bucket, str] = MappingProxyType(
    {
        Bucket("trn", "on-demand"): "L-2C3B7624",
        Bucket("inf", "on-demand"): "L-1945791B",
        Bucket("trn", "spot"): "L-6B0D517C",
        Bucket("inf", "spot"): "L-B5D1601B",
    }
)

# The keys under which a stack file or a policy configuration declares quotas.
BUCKET_KEYS: Mapping[str, Bucket] = MappingProxyType(
    {bucket.family if bucket.purchase == "on-demand" else f"{bucket.family}-spot": bucket for bucket in QUOTA_CODES}
)


@dataclass(frozen=True)
class Update:
    """How a managed node group replaces its nodes; a count or a percentage, and EKS's default of 1 where both are None.

    `zones` is how many availability zones the group spans, None where that is not known.
    """

    max_unavailable: int | None = None
    max_unavailable_percentage: int | None = None
    strategy: UpdateStrategy = "DEFAULT"
    zones: int | None = None


@dataclass(frozen=True)
class NodeGroupCapacity:
    """A managed node group at its largest."""

    name: str
    instance: InstanceType
    maximum_nodes: int
    purchase: Purchase = "on-demand"
    update: Update = Update()


@dataclass(frozen=True)
class NodePoolCapacity:
    """A Karpenter NodePool with a limit, for each bucket that it may buy from."""

    name: str
    cpu_limit_vcpus: int
    buckets: frozenset[Bucket]


@dataclass(frozen=True)
class Term:
    """One summand: vCPUs and where they come from."""

    vcpus: int
    reason: str

    def __str__(self) -> str:
        """As in `8 (1 x trn1.2xlarge)`."""
        return f"{self.vcpus} ({self.reason})"


@dataclass(frozen=True)
class Quota:
    """A quota in vCPUs, what others than this stack use of it now, and who says so."""

    vcpus: int
    used_by_others_vcpus: int = 0
    source: QuotaSource = "declared in the stack file"

    @property
    def available_vcpus(self) -> int:
        """What is left for this stack; never below 0, though a quota may be lowered below its use."""
        return max(self.vcpus - self.used_by_others_vcpus, 0)


@dataclass(frozen=True)
class Verdict:
    """What a stack needs of one bucket at its largest, against the quota if it is known."""

    bucket: Bucket
    terms: tuple[Term, ...]
    quota: Quota | None

    @property
    def needed_vcpus(self) -> int:
        """The sum."""
        return sum(term.vcpus for term in self.terms)

    @property
    def fits(self) -> bool | None:
        """Whether the sum is within what is left; None if the quota is not known."""
        return None if self.quota is None else self.needed_vcpus <= self.quota.available_vcpus

    @property
    def sum(self) -> str:
        """The sum in one line, as in `trn on-demand: 8 (1 x trn1.2xlarge) + 8 (update surge 1) = 16 of 8 vCPUs`."""
        left = f"{self.bucket}: {' + '.join(map(str, self.terms))} = {self.needed_vcpus}"
        if self.quota is None:
            return f"{left} vCPUs of an unknown quota"
        return f"{left} of {self.quota.available_vcpus} vCPUs"

    def __str__(self) -> str:
        """The sum, then the quota's code, who says it, and what others use of it."""
        code = QUOTA_CODES[self.bucket]
        if self.quota is None:
            return f"{self.sum} ({code})"
        others = f", {self.quota.used_by_others_vcpus} in use by others" if self.quota.used_by_others_vcpus else ""
        return f"{self.sum} ({code}, {self.quota.source}: {self.quota.vcpus}{others})"


def declared_quotas(stated: object, source: QuotaSource) -> dict[Bucket, Quota]:
    """The quotas that a mapping declares; what is no mapping, no known key or no number declares none."""
    if not isinstance(stated, Mapping):
        return {}
    numbers = {bucket: stated.get(key) for key, bucket in BUCKET_KEYS.items()}
    return {
        bucket: Quota(int(vcpus), source=source)
        for bucket, vcpus in numbers.items()
        # JSON as Python reads it has NaN and Infinity.
        if isinstance(vcpus, int | float) and not isinstance(vcpus, bool) and math.isfinite(vcpus)
    }


def update_surge_nodes(update: Update, maximum_nodes: int) -> int:
    """Nodes that an update starts before it stops old ones; ImpossibleInputError where the API refuses the settings.

    With the strategy MINIMAL old nodes go first. With DEFAULT, EKS adds the larger of the nodes it replaces at a time
    and up to two a zone, to place each new node in the zone of an old one; without zones only the former is known.
    """
    if update.strategy == "MINIMAL":
        return 0
    return max(_max_unavailable_nodes(update, maximum_nodes), 2 * (update.zones or 0))


def needs(
    groups: Iterable[NodeGroupCapacity], pools: Iterable[NodePoolCapacity] = ()
) -> dict[Bucket, tuple[Term, ...]]:
    """What groups at their maximum, their updates and the pools' limits add up to, for each bucket that they touch.

    All groups may update at the same time. A pool that may buy from several buckets counts wholly in each.
    """
    terms: dict[Bucket, list[Term]] = {}
    for group in groups:
        bucket = bucket_of(group.instance, group.purchase)
        if bucket is not None:
            terms.setdefault(bucket, []).extend(_group_terms(group))
    for pool in pools:
        for bucket in pool.buckets:
            terms.setdefault(bucket, []).append(Term(pool.cpu_limit_vcpus, f"limit of NodePool {pool.name}"))
    return {bucket: tuple(terms[bucket]) for bucket in sorted(terms)}


def check_quotas(needed: Mapping[Bucket, tuple[Term, ...]], quotas: Mapping[Bucket, Quota]) -> tuple[Verdict, ...]:
    """A verdict for each bucket that is needed."""
    return tuple(Verdict(bucket, terms, quotas.get(bucket)) for bucket, terms in needed.items())


def bucket_of(instance: InstanceType, purchase: Purchase) -> Bucket | None:
    """The quota that an instance counts against; None for capacity that was paid for before."""
    if purchase in ("capacity-reservation", "capacity-block"):
        return None
    return Bucket(instance.quota_family, "spot" if purchase == "spot" else "on-demand")


def _group_terms(group: NodeGroupCapacity) -> Iterable[Term]:
    yield Term(group.maximum_nodes * group.instance.vcpus, f"{group.maximum_nodes} x {group.instance.name}")
    surge = update_surge_nodes(group.update, group.maximum_nodes)
    if surge:
        yield Term(surge * group.instance.vcpus, f"update surge {surge}")


def _max_unavailable_nodes(update: Update, maximum_nodes: int) -> int:
    """The nodes replaced at a time; how EKS rounds a percentage is not documented: up is the safe reading here."""
    count, percentage = update.max_unavailable, update.max_unavailable_percentage
    if count is not None and percentage is not None:
        raise ImpossibleInputError("found maxUnavailable and maxUnavailablePercentage; allowed: one of the two")
    if percentage is not None:
        if not 1 <= percentage <= 100:
            raise ImpossibleInputError(f"found maxUnavailablePercentage {percentage}; allowed: 1 to 100")
        return min(max(-(-maximum_nodes * percentage // 100), 1), MAX_UNAVAILABLE_CEILING)
    if count is not None and not 1 <= count <= MAX_UNAVAILABLE_CEILING:
        raise ImpossibleInputError(f"found maxUnavailable {count}; allowed: 1 to {MAX_UNAVAILABLE_CEILING}")
    return 1 if count is None else count
