"""The vCPU sum against the source's VcpuLimitExceeded and against EKS's and EC2's documented rules."""

import pytest

from neuron.errors import ImpossibleInputError
from neuron.instances import instance_type
from neuron.quota import (
    BUCKET_KEYS,
    QUOTA_CODES,
    Bucket,
    NodeGroupCapacity,
    NodePoolCapacity,
    Purchase,
    Quota,
    Update,
    Verdict,
    check_quotas,
    needs,
    update_surge_nodes,
)

TRN = Bucket("trn", "on-demand")
INF = Bucket("inf", "on-demand")


def trn1_group(
    maximum_nodes: int = 1, purchase: Purchase = "on-demand", update: Update | None = None
) -> NodeGroupCapacity:
    """A group of trn1.2xlarge nodes, 8 vCPUs each."""
    return NodeGroupCapacity("neuron", instance_type("trn1.2xlarge"), maximum_nodes, purchase, update or Update())


def verdict(quota: Quota | None, *groups: NodeGroupCapacity) -> Verdict:
    """The only verdict on groups of the Trainium bucket."""
    (only,) = check_quotas(needs(groups), {} if quota is None else {TRN: quota})
    return only


def test_the_update_of_one_node_does_not_fit_the_sources_quota_of_eight() -> None:
    found = verdict(Quota(8), trn1_group())
    assert found.fits is False
    assert found.sum == "trn on-demand: 8 (1 x trn1.2xlarge) + 8 (update surge 1) = 16 of 8 vCPUs"


def test_the_same_node_fits_when_updates_stop_the_old_node_first() -> None:
    found = verdict(Quota(8), trn1_group(update=Update(strategy="MINIMAL")))
    assert found.fits is True
    assert found.sum == "trn on-demand: 8 (1 x trn1.2xlarge) = 8 of 8 vCPUs"


def test_what_others_use_is_not_there_for_this_stack() -> None:
    found = verdict(Quota(64, used_by_others_vcpus=52, source="applied"), trn1_group())
    assert found.fits is False
    assert str(found).endswith("= 16 of 12 vCPUs (L-2C3B7624, applied: 64, 52 in use by others)")


def test_a_quota_below_its_use_leaves_nothing() -> None:
    assert Quota(8, used_by_others_vcpus=16).available_vcpus == 0


def test_an_unknown_quota_is_neither_enough_nor_too_little() -> None:
    found = verdict(None, trn1_group())
    assert found.fits is None
    assert "unknown quota" in str(found)


def test_families_and_purchase_options_have_quotas_of_their_own() -> None:
    inf2 = NodeGroupCapacity("inf", instance_type("inf2.xlarge"), 3, "spot", Update(strategy="MINIMAL"))
    found = needs([trn1_group(2), inf2])
    assert {bucket: sum(term.vcpus for term in terms) for bucket, terms in found.items()} == {
        Bucket("inf", "spot"): 12,
        TRN: 24,
    }


def test_groups_of_one_bucket_add_up() -> None:
    trn2 = NodeGroupCapacity("big", instance_type("trn2.3xlarge"), 1, update=Update(strategy="MINIMAL"))
    assert verdict(Quota(28), trn1_group(), trn2).fits is True
    assert verdict(Quota(27), trn1_group(), trn2).fits is False


@pytest.mark.parametrize("purchase", ["capacity-reservation", "capacity-block"])
def test_capacity_that_was_bought_before_needs_no_quota(purchase: Purchase) -> None:
    assert needs([trn1_group(purchase=purchase)]) == {}


def test_a_node_pool_counts_with_its_limit_in_each_bucket_that_it_may_buy_from() -> None:
    pool = NodePoolCapacity("burst", 32, frozenset({TRN, Bucket("trn", "spot")}))
    found = check_quotas(needs([trn1_group()], [pool]), {TRN: Quota(48)})
    assert [one.needed_vcpus for one in found] == [48, 32]
    assert found[0].sum.endswith("+ 32 (limit of NodePool burst) = 48 of 48 vCPUs")


@pytest.mark.parametrize(
    ("update", "maximum_nodes", "surge"),
    [
        (Update(), 4, 1),
        (Update(max_unavailable=3), 4, 3),
        (Update(max_unavailable_percentage=50), 3, 2),
        (Update(max_unavailable_percentage=1), 3, 1),
        (Update(max_unavailable_percentage=100), 300, 100),
        # The example of the EKS user guide: five zones, one node at a time, at most ten new nodes.
        (Update(max_unavailable=1, zones=5), 5, 10),
        (Update(max_unavailable=20, zones=5), 40, 20),
        (Update(max_unavailable=3, strategy="MINIMAL", zones=2), 4, 0),
    ],
)
def test_the_surge_follows_the_update_settings(update: Update, maximum_nodes: int, surge: int) -> None:
    assert update_surge_nodes(update, maximum_nodes) == surge


@pytest.mark.parametrize(
    ("update", "found"),
    [
        (Update(max_unavailable=0), "found maxUnavailable 0; allowed: 1 to 100"),
        (Update(max_unavailable=101), "found maxUnavailable 101"),
        (Update(max_unavailable_percentage=0), "found maxUnavailablePercentage 0"),
        (Update(max_unavailable=1, max_unavailable_percentage=50), "one of the two"),
    ],
)
def test_update_settings_that_eks_refuses_are_named(update: Update, found: str) -> None:
    with pytest.raises(ImpossibleInputError, match=found):
        update_surge_nodes(update, 4)


def test_every_bucket_has_a_code_and_a_key() -> None:
    assert len(set(QUOTA_CODES.values())) == 4
    assert {key: QUOTA_CODES[bucket] for key, bucket in BUCKET_KEYS.items()} == {
        "trn": "L-2C3B7624",
        "inf": "L-1945791B",
        "trn-spot": "L-6B0D517C",
        "inf-spot": "L-B5D1601B",
    }
