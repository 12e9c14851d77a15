"""vcpu-quota: the sum of what a stack may start, against what the configuration declares."""

import json
from typing import Any

import pytest
from pulumi_policy import StackValidationArgs
from pulumi_policy.proxy import UNKNOWN_NUMBER_VALUE, UNKNOWN_STRING_VALUE

from policy.resources import from_stack_args
from policy.rules.vcpu_quota import RULE
from tests.policy.fixtures import CUSTOM_RESOURCE_TYPE, Props, custom_resource
from tests.policy.judging import Given, judge_stack

TRN1 = {"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["trn1"]}


def group(nodes: Any = 1, instance_type: str = "trn1.2xlarge", update: Props | None = None, **more: Any) -> Given:
    props = {"instanceTypes": [instance_type], "scalingConfig": {"maxSize": nodes}, "updateConfig": update or {}}
    return Given("aws:eks/nodeGroup:NodeGroup", props | more, f"group-{instance_type}")


def pool(limits: Any, *requirements: Props) -> Given:
    spec: Props = {"template": {"spec": {"requirements": list(requirements or [TRN1])}}, "limits": limits}
    return Given(CUSTOM_RESOURCE_TYPE, custom_resource("karpenter.sh/v1", "NodePool", spec, "neuron"), "pool")


def bought(*ways: str) -> Props:
    return {"key": "karpenter.sh/capacity-type", "operator": "In", "values": list(ways)}


def quotas(**vcpus: Any) -> dict[str, Any]:
    return {"quotas": {key.replace("_", "-"): value for key, value in vcpus.items()}}


def test_the_measured_quota_holds_one_node_but_not_its_update() -> None:
    verdict = judge_stack(RULE, group(), config=quotas(trn=8))
    assert (
        "trn on-demand: 8 (1 x trn1.2xlarge) + 8 (update surge 1) = 16 of 8 vCPUs "
        "(L-2C3B7624, declared in the policy configuration: 8)" in verdict.violations[0]
    )
    assert "VcpuLimitExceeded" in verdict.violations[0]
    assert judge_stack(RULE, group(), config=quotas(trn=16)).passed
    assert judge_stack(RULE, group(update={"updateStrategy": "MINIMAL"}), config=quotas(trn=8)).passed


@pytest.mark.parametrize(
    ("update", "needed"),
    [
        ({}, 5),
        ({"maxUnavailable": 2}, 6),
        ({"maxUnavailable": 2.0, "updateStrategy": "DEFAULT"}, 6),
        ({"maxUnavailablePercentage": 50}, 6),
        ({"maxUnavailable": 3, "updateStrategy": "MINIMAL"}, 4),
    ],
)
def test_the_update_surge_follows_the_update_settings(update: Props, needed: int) -> None:
    assert judge_stack(RULE, group(4, update=update), config=quotas(trn=needed * 8)).passed
    assert judge_stack(RULE, group(4, update=update), config=quotas(trn=needed * 8 - 1)).violations


def test_groups_of_a_family_add_up_and_families_do_not() -> None:
    stack = (group(), group(2, "inf2.xlarge"))
    assert judge_stack(RULE, *stack, config=quotas(trn=16, inf=12)).passed
    assert "inf on-demand" in judge_stack(RULE, *stack, config=quotas(trn=16, inf=11)).violations[0]
    both = (group(), Given("aws-native:eks:Nodegroup", group().props, "second"))
    assert judge_stack(RULE, *both, config=quotas(trn=32)).passed
    assert judge_stack(RULE, *both, config=quotas(trn=31)).violations


def test_each_way_to_buy_has_its_quota() -> None:
    spot = group(capacityType="SPOT")
    assert judge_stack(RULE, spot, config=quotas(trn=0, trn_spot=16)).passed
    assert "trn spot" in judge_stack(RULE, spot, config=quotas(trn=64, trn_spot=8)).violations[0]
    assert judge_stack(RULE, group(capacityType="CAPACITY_BLOCK"), config=quotas(trn=0)).passed
    target = {"capacityReservationSpecification": {"capacityReservationTarget": {"capacityReservationId": "cr-1"}}}
    template = Given("aws:ec2/launchTemplate:LaunchTemplate", target, "template")
    reserved = Given(group().type, group().props, "reserved", {"launchTemplate": [template]})
    assert judge_stack(RULE, template, reserved, config=quotas(trn=0)).passed


def test_the_type_may_stand_in_the_launch_template_and_the_largest_of_several_counts() -> None:
    template = Given("aws:ec2/launchTemplate:LaunchTemplate", {"instanceType": "trn1.2xlarge"}, "template")
    props = {key: value for key, value in group().props.items() if key != "instanceTypes"}
    by_template = Given(group().type, props, "group", {"launchTemplate": [template]})
    assert judge_stack(RULE, template, by_template, config=quotas(trn=8)).violations
    several = group(instanceTypes=["trn1.2xlarge", "trn1.32xlarge"])
    assert "256 of" in judge_stack(RULE, several, config=quotas(trn=255)).violations[0]


def test_self_managed_nodes_count_without_a_surge() -> None:
    own = Given("eks:index:NodeGroupV2", {"instanceType": "trn1.2xlarge", "maxSize": 3}, "own")
    assert judge_stack(RULE, own, config=quotas(trn=24)).passed
    assert judge_stack(RULE, own, config=quotas(trn=23)).violations
    unstated = Given("eks:index:NodeGroupV2", {"instanceType": "trn1.2xlarge"}, "own")
    assert judge_stack(RULE, unstated, config=quotas(trn=15)).violations


def test_nodes_that_exist_already_are_not_started_by_this_stack() -> None:
    existing = Given("neuron-serving:index:ExistingNodeGroup", {"instanceType": "trn1.2xlarge", "nodes": 1}, "found")
    assert judge_stack(RULE, existing, config=quotas(trn=7)).passed
    assert judge_stack(RULE, existing).passed


def test_a_managed_node_group_of_pulumi_eks_is_counted_once_by_its_child() -> None:
    parent = Given("eks:index:ManagedNodeGroup", group().props, "parent")
    assert judge_stack(RULE, parent, group(), config=quotas(trn=16)).passed


@pytest.mark.parametrize(
    ("limits", "vcpus"),
    [({"cpu": "16"}, 16), ({"cpu": 16.0}, 16), ({"aws.amazon.com/neuron": "16"}, 128), ({"nodes": 2}, 256)],
)
def test_the_limit_of_a_karpenter_pool_counts(limits: Any, vcpus: int) -> None:
    given = pool(limits, TRN1, bought("on-demand"))
    assert judge_stack(RULE, given, config=quotas(trn=vcpus)).passed
    assert f"{vcpus} (limit of NodePool neuron)" in judge_stack(RULE, given, config=quotas(trn=vcpus - 1)).violations[0]


def test_a_pool_counts_in_each_quota_that_it_may_buy_from() -> None:
    assert len(judge_stack(RULE, pool({"cpu": 16}), config=quotas(trn=8, trn_spot=8)).violations) == 2
    spot = pool({"cpu": 16}, TRN1, bought("spot"))
    assert judge_stack(RULE, spot, config=quotas(trn=0, trn_spot=16)).passed
    assert judge_stack(RULE, pool({"cpu": 16}, TRN1, bought("reserved")), config=quotas(trn=0, trn_spot=0)).passed


def test_pools_without_a_limit_or_for_other_nodes_have_no_number() -> None:
    assert judge_stack(RULE, pool(None), config=quotas(trn=8)).passed
    anything = {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}
    assert judge_stack(RULE, pool({"cpu": 1000}, anything), config=quotas(trn=8)).passed
    assert judge_stack(RULE, group(9, "m7i.large"), config=quotas(trn=0, inf=0)).passed


@pytest.mark.parametrize(
    "config",
    [None, {}, {"quotas": {}}, {"quotas": {"inf": 8}}, {"quotas": {"trn": "many"}}, {"quotas": {"trn": float("inf")}}],
)
def test_without_a_declared_quota_the_rule_says_that_it_cannot_judge(config: dict[str, Any] | None) -> None:
    verdict = judge_stack(RULE, group(), config=config)
    assert verdict.violations == ()
    assert "= 16 vCPUs of an unknown quota (L-2C3B7624): no quota is declared" in verdict.unjudged
    assert 'declare {"quotas": {"trn": <vCPUs of L-2C3B7624>}} in the configuration of the stack or of vcpu-quota' in (
        verdict.unjudged
    )


def of_a_stack(patch: pytest.MonkeyPatch, project: str, **config: str) -> None:
    """The environment in which a language host starts a pack."""
    patch.setenv("PULUMI_PROJECT", project)
    patch.setenv("PULUMI_CONFIG", json.dumps({f"shop:{key}": value for key, value in config.items()}))


def test_the_quotas_of_the_stack_file_count(monkeypatch: pytest.MonkeyPatch) -> None:
    of_a_stack(monkeypatch, "shop", quotas='{"trn": 8}')
    assert "= 16 of 8 vCPUs (L-2C3B7624, declared in the stack file: 8)" in judge_stack(RULE, group()).violations[0]
    of_a_stack(monkeypatch, "shop", quotas='{"trn": 16}')
    assert judge_stack(RULE, group()).passed


def test_the_policy_configuration_wins_quota_by_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    of_a_stack(monkeypatch, "shop", quotas='{"trn": 16, "inf": 0}')
    given = (group(), group(instance_type="inf2.xlarge"))
    of_inf, of_trn = judge_stack(RULE, *given, config=quotas(trn=8)).violations
    assert "(L-2C3B7624, declared in the policy configuration: 8)" in of_trn
    assert "(L-1945791B, declared in the stack file: 0)" in of_inf


@pytest.mark.parametrize(
    ("project", "config"),
    [
        ("another", {"quotas": '{"trn": 8}'}),
        ("shop", {"quota": '{"trn": 8}'}),
        ("shop", {"quotas": "of something else"}),
        ("shop", {"quotas": "8"}),
        ("shop", {"quotas": '{"requests": 8, "trn": "8"}'}),
        ("shop", {"quotas": '["trn"]'}),
        ("shop", {"quotas": '{"trn": NaN}'}),
        pytest.param("shop", {"quotas": f'{{"trn": {"9" * 5000}}}'}, id="too-many-digits"),
        pytest.param("shop", {"quotas": "[" * 50_000}, id="too-deep"),
    ],
)
def test_what_is_no_quota_of_the_project_declares_none(
    monkeypatch: pytest.MonkeyPatch, project: str, config: dict[str, str]
) -> None:
    of_a_stack(monkeypatch, project, **config)
    assert "no quota is declared" in judge_stack(RULE, group()).unjudged


def test_the_secrets_of_a_stack_are_not_shown_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    of_a_stack(monkeypatch, "shop", anything="in clear")
    stack = from_stack_args(StackValidationArgs([], None))
    assert stack.own_config == {"anything": "in clear"}
    assert "in clear" not in repr(stack)


def test_a_stack_without_neuron_nodes_needs_no_quota() -> None:
    assert judge_stack(RULE, group(9, "m7i.large")).passed


def test_what_is_unknown_of_nodes_without_accelerators_is_nothing_that_was_not_judged() -> None:
    assert judge_stack(RULE, group(UNKNOWN_NUMBER_VALUE, "m7i.large", capacityType=UNKNOWN_STRING_VALUE)).passed


def test_an_update_that_eks_would_refuse_is_said_in_one_line() -> None:
    verdict = judge_stack(RULE, group(update={"maxUnavailable": 1, "maxUnavailablePercentage": 10}))
    assert "found maxUnavailable and maxUnavailablePercentage; allowed: one of the two" in verdict.violations[0]


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        (group(UNKNOWN_NUMBER_VALUE), "scalingConfig.maxSize"),
        (group(1, UNKNOWN_STRING_VALUE), "instanceTypes[0]"),
        (pool({"cpu": UNKNOWN_STRING_VALUE}), "limits.cpu"),
    ],
)
def test_what_is_not_known_yet_is_left_out_and_hides_no_sum_that_is_too_large(given: Given, seen: str) -> None:
    assert seen in judge_stack(RULE, given, config=quotas(trn=8, trn_spot=8)).unjudged
    verdict = judge_stack(RULE, given, Given(group().type, group().props, "other"), config=quotas(trn=8, trn_spot=8))
    assert len(verdict.violations) == 1
    assert seen in verdict.unjudged
