"""rollout-capacity: what a Deployment must state, and what its surge may ask of the stack's pools."""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pulumi_policy.proxy import UNKNOWN_NUMBER_VALUE, UNKNOWN_OBJECT_VALUE, UNKNOWN_STRING_VALUE

from policy.rules.rollout_capacity import RULE
from tests.policy.fixtures import (
    COMPLIANT_DEPLOYMENT,
    COMPLIANT_POD_SPEC,
    CUSTOM_RESOURCE_TYPE,
    DEPLOYMENT_TYPE,
    POD,
    SERVER,
    SERVING_KINDS,
    Path,
    Props,
    thawed,
    with_value,
    without,
)
from tests.policy.judging import Given, judge, judge_stack

STRATEGY = ("spec", "strategy")
CHIPS = (*SERVER, "resources", "limits", "aws.amazon.com/neuron")
SELECTOR = (*POD, "nodeSelector")
SURGING = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}


def deployment(strategy: Any = SURGING, name: str = "vllm", **changes: Any) -> Given:
    """The compliant Deployment, by default with a surge of 1. Changes: replicas, chips, selector."""
    props = with_value(COMPLIANT_DEPLOYMENT, ("metadata", "name"), name)
    props = without(props, STRATEGY) if strategy is None else with_value(props, STRATEGY, strategy)
    paths: dict[str, Path] = {"replicas": ("spec", "replicas"), "chips": CHIPS, "selector": SELECTOR}
    for key, value in changes.items():
        props = with_value(props, paths[key], value)
    return Given(DEPLOYMENT_TYPE, props, name)


def node_group(nodes: Any, instance_type: Any = "trn1.2xlarge", name: str = "neuron", **more: Any) -> Given:
    scaling = {"minSize": 0, "desiredSize": 0, "maxSize": nodes}
    props = {"nodeGroupName": name, "instanceTypes": [instance_type], "scalingConfig": scaling, **more}
    return Given("aws:eks/nodeGroup:NodeGroup", props, name)


def existing(nodes: Any, instance_type: str = "trn1.2xlarge", name: str = "found") -> Given:
    props = {"name": name, "nodes": nodes, "instanceType": instance_type}
    return Given("neuron-serving:index:ExistingNodeGroup", props, name)


def node_pool(limits: Any, requirements: list[Props] | None = None, name: str = "karpenter") -> Given:
    spec: Props = {"template": {"spec": {"requirements": requirements or [TRN1]}}}
    spec |= {} if limits is None else {"limits": limits}
    props = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": spec}
    return Given(CUSTOM_RESOURCE_TYPE, props, name)


TRN1 = {"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["trn1"]}


class TestWhatADeploymentStates:
    """Judged on one resource's inputs."""

    def test_the_compliant_deployment_passes(self) -> None:
        assert judge(RULE, COMPLIANT_DEPLOYMENT).passed

    @pytest.mark.parametrize(
        "strategy", [None, {}, {"type": "RollingUpdate"}, {"type": "RollingUpdate", "rollingUpdate": {}}]
    )
    def test_the_kubernetes_default_is_a_violation(self, strategy: Any) -> None:
        [message] = judge(RULE, deployment(strategy).props).violations
        assert "Deployment serving/vllm (spec.strategy): no strategy is stated" in message
        assert "the rollout never completed" in message
        assert "Fix: set spec.strategy to" in message

    @pytest.mark.parametrize(
        "strategy",
        [
            {"type": "Recreate"},
            SURGING,
            {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
            {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0}},
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": "1%"}},
        ],
    )
    def test_an_explicit_strategy_passes_where_no_pool_is_known(self, strategy: Any) -> None:
        assert judge(RULE, deployment(strategy).props).passed
        assert judge_stack(RULE, deployment(strategy)).passed

    @pytest.mark.parametrize("surge", [0, "0", "0%", 0.0])
    @pytest.mark.parametrize("unavailable", [0, "0", "0%"])
    def test_zero_and_zero_is_invalid(self, surge: object, unavailable: object) -> None:
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
        assert "both 0" in judge(RULE, deployment(strategy).props).violations[0]

    @pytest.mark.parametrize("surge", ["some", -1, 1.5, "1.5%"])
    def test_what_the_api_server_would_refuse_is_a_violation(self, surge: object) -> None:
        strategy = {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": 1}}
        assert "cannot be read" in judge(RULE, deployment(strategy).props).violations[0]

    def test_a_deployment_without_an_accelerator_may_leave_it_to_kubernetes(self) -> None:
        assert judge(RULE, without(deployment(None).props, CHIPS)).passed

    def test_a_gpu_deployment_states_its_strategy_too(self) -> None:
        props = with_value(deployment(None).props, (*SERVER, "resources", "limits"), {"nvidia.com/gpu": 1})
        assert judge(RULE, props).violations

    @pytest.mark.parametrize(
        "kind", sorted(set(SERVING_KINDS) - {"Deployment", "DeploymentList", "extensions Deployment"})
    )
    def test_only_deployments_roll_this_way(self, kind: str) -> None:
        resource_type, props = SERVING_KINDS[kind](thawed(COMPLIANT_POD_SPEC))
        assert judge(RULE, props, resource_type).passed

    def test_deployments_in_a_list_are_judged(self) -> None:
        resource_type, props = SERVING_KINDS["DeploymentList"](thawed(COMPLIANT_POD_SPEC))
        assert "(items[0].spec.strategy)" in judge(RULE, props, resource_type).violations[0]

    def test_a_patch_may_leave_the_strategy_to_the_owner(self) -> None:
        assert judge(RULE, deployment(None).props, "kubernetes:apps/v1:DeploymentPatch").passed

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            (STRATEGY, UNKNOWN_OBJECT_VALUE),
            ((*STRATEGY, "type"), UNKNOWN_STRING_VALUE),
            ((*STRATEGY, "rollingUpdate"), UNKNOWN_OBJECT_VALUE),
            ((*STRATEGY, "rollingUpdate", "maxSurge"), UNKNOWN_NUMBER_VALUE),
        ],
    )
    def test_an_unknown_strategy_is_said_to_be_unjudged(self, path: Path, value: str) -> None:
        verdict = judge(RULE, with_value(COMPLIANT_DEPLOYMENT, path, value))
        assert verdict.violations == ()
        assert "spec.strategy" in verdict.unjudged


def in_both_passes(server: Given, *others: Given) -> tuple[str, ...]:
    """What is said of one Deployment: each finding in one pass only."""
    return judge(RULE, server.props).violations + judge_stack(RULE, server, *others).violations


class TestTheCapacityOfNodeGroups:
    """Judged on the outputs of the stack."""

    @pytest.mark.parametrize("pool", [node_group, existing])
    def test_a_surge_fits_only_where_a_node_is_free(self, pool: Any) -> None:
        [message] = judge_stack(RULE, deployment(), pool(1)).violations
        assert "maxSurge comes to 1 more pods, but there is room for 0 beside 1 of its own" in message
        assert "(1 x trn1.2xlarge)" in message
        assert judge_stack(RULE, deployment(), pool(2)).passed

    def test_the_violation_names_the_deployment_and_not_the_stack(self) -> None:
        server = deployment()
        assert judge_stack(RULE, node_group(1), server).urns == (server.urn,)

    @pytest.mark.parametrize(
        "strategy", [{"type": "Recreate"}, {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}]
    )
    def test_without_a_surge_a_full_pool_is_fine(self, strategy: Any) -> None:
        assert judge_stack(RULE, deployment(strategy), node_group(1)).passed

    def test_the_default_that_the_api_server_filled_in_needs_a_free_node(self) -> None:
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}
        assert judge_stack(RULE, deployment(strategy), node_group(1)).violations
        assert judge_stack(RULE, deployment(strategy), node_group(2)).passed

    @pytest.mark.parametrize("pools", [(), (node_group(9),), (node_group(1),)])
    def test_a_missing_strategy_is_one_violation_with_and_without_pools(self, pools: tuple[Given, ...]) -> None:
        assert len(in_both_passes(deployment(None), *pools)) == 1

    def test_replicas_take_their_nodes(self) -> None:
        assert judge_stack(RULE, deployment(replicas=3), node_group(3)).violations
        assert judge_stack(RULE, deployment(replicas=3), node_group(4)).passed

    def test_several_pods_share_a_node_with_several_chips(self) -> None:
        selector = {"node.kubernetes.io/instance-type": "trn1.32xlarge"}
        pool = node_group(1, "trn1.32xlarge")
        assert judge_stack(RULE, deployment(replicas=3, chips="4", selector=selector), pool).passed
        assert judge_stack(RULE, deployment(replicas=4, chips="4", selector=selector), pool).violations
        assert judge_stack(RULE, deployment(replicas=3, chips="5", selector=selector), pool).violations

    def test_pods_that_ask_for_cores_and_for_chips_add_up(self) -> None:
        limits = {"memory": "1Gi", "aws.amazon.com/neuroncore": "1"}
        by_core = with_value(deployment().props, (*SERVER, "resources", "limits"), limits)
        assert judge_stack(RULE, Given(DEPLOYMENT_TYPE, by_core), node_group(1)).passed
        assert judge_stack(
            RULE, Given(DEPLOYMENT_TYPE, by_core), deployment({"type": "Recreate"}), node_group(1)
        ).violations

    def test_other_workloads_of_the_stack_take_their_nodes(self) -> None:
        other = deployment({"type": "Recreate"}, name="other")
        assert judge_stack(RULE, deployment(), other, node_group(2)).violations
        assert judge_stack(RULE, deployment(), other, node_group(3)).passed

    def test_a_daemon_set_takes_its_share_of_every_node(self) -> None:
        resource_type, props = SERVING_KINDS["DaemonSet"](thawed(COMPLIANT_POD_SPEC))
        assert judge_stack(RULE, deployment(), Given(resource_type, props, "daemon"), node_group(9)).violations

    def test_a_job_only_delays_a_rollout(self) -> None:
        pod = thawed(COMPLIANT_POD_SPEC) | {"restartPolicy": "Never"}
        props = {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": {"spec": pod}}}
        assert judge_stack(RULE, deployment(), Given("kubernetes:batch/v1:Job", props, "job"), node_group(2)).passed

    def test_groups_of_leaders_and_workers_are_counted_whole(self) -> None:
        resource_type, props = SERVING_KINDS["LeaderWorkerSet worker"](thawed(COMPLIANT_POD_SPEC))
        group = Given(resource_type, with_value(props, ("spec", "replicas"), 2), "group")
        assert judge_stack(RULE, deployment(), group, node_group(5)).violations
        assert judge_stack(RULE, deployment(), group, node_group(6)).passed

    def test_init_containers_take_their_chips_before_and_not_beside_the_server(self) -> None:
        limits = {"memory": "2Gi", "aws.amazon.com/neuron": "1"}
        init = (*POD, "initContainers", 0)
        props = with_value(deployment().props, (*init, "resources", "limits"), limits)
        assert judge_stack(RULE, Given(DEPLOYMENT_TYPE, props), node_group(2)).passed
        sidecar = with_value(props, (*init, "restartPolicy"), "Always")
        assert judge_stack(RULE, Given(DEPLOYMENT_TYPE, sidecar), node_group(2)).violations

    def test_the_instance_type_may_stand_in_the_launch_template(self) -> None:
        template = Given("aws:ec2/launchTemplate:LaunchTemplate", {"instanceType": "trn1.2xlarge"}, "template")
        props = without(node_group(1).props, ("instanceTypes",))
        pool = Given("aws:eks/nodeGroup:NodeGroup", props, "neuron", {"launchTemplate": [template]})
        assert judge_stack(RULE, deployment(), template, pool).violations

    def test_a_group_without_neuron_nodes_is_no_pool(self) -> None:
        assert judge_stack(RULE, deployment(selector={}), node_group(1, "m7i.large")).passed

    def test_the_capacity_for_gpus_is_not_known_and_an_explicit_strategy_passes(self) -> None:
        props = with_value(deployment().props, (*SERVER, "resources", "limits"), {"nvidia.com/gpu": 1})
        assert judge_stack(RULE, Given(DEPLOYMENT_TYPE, props), node_group(1, "g6.xlarge"), node_group(1)).passed


class TestAutoscalers:
    """The largest number of replicas counts."""

    TARGET: Mapping[str, Any] = {"kind": "Deployment", "name": "vllm"}

    def scaler(self, group: str, kind: str, spec: Props, namespace: str = "serving") -> Given:
        metadata = {"name": "scaler", "namespace": namespace}
        props = {"apiVersion": f"{group}/v1", "kind": kind, "metadata": metadata, "spec": spec}
        return Given(f"kubernetes:{group}/v1:{kind}", props, "scaler")

    def test_a_horizontal_pod_autoscaler_counts_with_its_maximum(self) -> None:
        hpa = self.scaler("autoscaling", "HorizontalPodAutoscaler", {"scaleTargetRef": self.TARGET, "maxReplicas": 3})
        server = Given(DEPLOYMENT_TYPE, without(deployment().props, ("spec", "replicas")))
        assert judge_stack(RULE, server, hpa, node_group(3)).violations
        assert judge_stack(RULE, server, hpa, node_group(4)).passed

    def test_a_scaled_object_counts_with_its_maximum_or_that_of_keda(self) -> None:
        target = {"name": "vllm"}
        stated = self.scaler("keda.sh", "ScaledObject", {"scaleTargetRef": target, "maxReplicaCount": 2})
        assert judge_stack(RULE, deployment(), stated, node_group(2)).violations
        assert judge_stack(RULE, deployment(), stated, node_group(3)).passed
        default = self.scaler("keda.sh", "ScaledObject", {"scaleTargetRef": target})
        assert judge_stack(RULE, deployment(), default, node_group(100)).violations
        assert judge_stack(RULE, deployment(), default, node_group(101)).passed

    def test_an_autoscaler_of_another_target_does_not_count(self) -> None:
        spec = {"scaleTargetRef": self.TARGET, "maxReplicas": 9}
        elsewhere = self.scaler("autoscaling", "HorizontalPodAutoscaler", spec, namespace="other")
        assert judge_stack(RULE, deployment(), elsewhere, node_group(2)).passed


class TestWhichPoolsADeploymentCanUse:
    """By node selector and required affinity."""

    def test_all_pools_with_the_accelerator_without_a_selector(self) -> None:
        assert judge_stack(RULE, deployment(selector={}), node_group(1), node_group(1, name="second")).passed

    @pytest.mark.parametrize(
        ("key", "mine", "others"),
        [
            ("node.kubernetes.io/instance-type", "trn1.2xlarge", "inf2.xlarge"),
            ("eks.amazonaws.com/nodegroup", "neuron", "second"),
            ("tier", "serving", "batch"),
        ],
    )
    def test_a_selector_leaves_only_the_pools_that_have_the_label(self, key: str, mine: str, others: str) -> None:
        free = node_group(5, "inf2.xlarge", "second", labels={"tier": "batch"})
        full = node_group(1, labels={"tier": "serving"})
        assert judge_stack(RULE, deployment(selector={key: mine}), full, free).violations
        assert judge_stack(RULE, deployment(selector={key: others}), full, free).passed
        expression = {"key": key, "operator": "In", "values": [mine]}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
        by_affinity = with_value(deployment(selector={}).props, (*POD, "affinity"), affinity)
        assert judge_stack(RULE, Given(DEPLOYMENT_TYPE, by_affinity), full, free).violations

    def test_terms_of_an_affinity_are_alternatives(self) -> None:
        terms = [
            {"matchExpressions": [{"key": "tier", "operator": "In", "values": [tier]}]} for tier in ("serving", "batch")
        ]
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
        props = with_value(deployment(selector={}).props, (*POD, "affinity"), affinity)
        free = node_group(1, name="second", labels={"tier": "batch"})
        assert judge_stack(RULE, Given(DEPLOYMENT_TYPE, props), node_group(1, labels={"tier": "serving"}), free).passed

    @pytest.mark.parametrize(
        ("operator", "values", "usable"),
        [("Exists", [], True), ("DoesNotExist", [], False), ("NotIn", ["serving"], False), ("NotIn", ["x"], True)],
    )
    def test_every_operator_of_an_affinity_is_understood(self, operator: str, values: list[str], usable: bool) -> None:
        expression = {"key": "tier", "operator": operator, "values": values}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
        props = with_value(deployment(selector={}).props, (*POD, "affinity"), affinity)
        verdict = judge_stack(RULE, Given(DEPLOYMENT_TYPE, props), node_group(1, labels={"tier": "serving"}))
        assert bool(verdict.violations) is usable

    def test_a_label_of_the_cloud_that_no_stack_tells_rules_no_pool_out(self) -> None:
        selector = {"topology.kubernetes.io/zone": "us-east-1a"}
        assert judge_stack(RULE, deployment(selector=selector), node_group(1)).violations

    def test_a_full_pool_that_the_deployment_cannot_use_says_nothing(self) -> None:
        assert judge_stack(RULE, deployment(selector={"pool": "elsewhere"}), node_group(1)).passed

    def test_nodes_that_something_else_made_may_have_any_label(self) -> None:
        assert judge_stack(RULE, deployment(selector={"pool": "neuron"}), existing(1)).violations
        assert judge_stack(RULE, deployment(selector={"eks.amazonaws.com/nodegroup": "other"}), existing(1)).passed

    def test_a_pod_that_no_node_can_hold_takes_no_place(self) -> None:
        impossible = deployment({"type": "Recreate"}, name="impossible", chips="16")
        assert judge_stack(RULE, deployment(), impossible, node_group(2)).passed

    def test_pods_that_find_no_room_leave_none_for_a_surge(self) -> None:
        waiting = deployment({"type": "Recreate"}, name="waiting", chips="9", replicas=2, selector={})
        assert judge_stack(RULE, deployment(selector={}), waiting, node_group(1, "trn1.32xlarge")).violations

    def test_a_pod_that_could_run_elsewhere_too_may_stand_in_the_way(self) -> None:
        anywhere = deployment({"type": "Recreate"}, name="anywhere", selector={})
        elsewhere = node_group(1, "inf2.xlarge", "second")
        for order in ((node_group(2), elsewhere), (elsewhere, node_group(2))):
            assert judge_stack(RULE, *order, deployment(), anywhere).violations
            assert judge_stack(RULE, *order, anywhere, deployment()).violations
        assert judge_stack(RULE, deployment(), anywhere, node_group(3), elsewhere).passed

    def test_a_label_whose_value_is_not_known_rules_no_pool_out(self) -> None:
        props = without(node_group(1).props, ("nodeGroupName",))
        unnamed = Given("aws:eks/nodeGroup:NodeGroup", props, "neuron")
        selector = {"eks.amazonaws.com/nodegroup": "some-name"}
        assert judge_stack(RULE, deployment(selector=selector), unnamed).violations


class TestUnknownAndUnlimitedCapacity:
    """A surge needs proof where a pool is full, and nothing is said against what cannot be known."""

    @pytest.mark.parametrize(
        ("limits", "passes"),
        [
            ({"aws.amazon.com/neuron": "1"}, False),
            ({"aws.amazon.com/neuron": "2"}, True),
            ({"cpu": "15"}, False),
            ({"cpu": "16"}, True),
            ({"cpu": "1000", "aws.amazon.com/neuron": 1}, False),
            ({"memory": "63Gi"}, False),
            ({"nodes": 2}, True),
            (None, True),
            ({"example.com/other": "1"}, True),
        ],
    )
    def test_the_limits_of_a_karpenter_pool_bound_it(self, limits: Any, passes: bool) -> None:
        assert judge_stack(RULE, deployment(), node_pool(limits)).passed is passes

    def test_a_karpenter_pool_starts_the_type_that_holds_the_pod(self) -> None:
        anything = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}
        large = deployment(chips="16", selector={})
        assert judge_stack(RULE, large, node_pool({"aws.amazon.com/neuron": 32}, [anything])).passed
        assert judge_stack(RULE, large, node_pool({"aws.amazon.com/neuron": 31}, [anything])).violations

    def test_a_karpenter_pool_of_other_families_is_no_pool(self) -> None:
        category = {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["c", "m"]}
        assert judge_stack(RULE, deployment(selector={}), node_pool({"cpu": "1"}, [category])).passed

    def test_an_unlimited_pool_beside_a_full_one_is_no_proof(self) -> None:
        assert judge_stack(RULE, deployment(), node_pool(None), node_group(1)).violations
        assert judge_stack(RULE, deployment(), node_pool(None), node_group(2)).passed

    @pytest.mark.parametrize(
        "pool",
        [
            node_group(UNKNOWN_NUMBER_VALUE),
            node_group(1, UNKNOWN_STRING_VALUE),
            node_group(1, instanceTypes=UNKNOWN_OBJECT_VALUE),
            node_group(1, labels=UNKNOWN_OBJECT_VALUE),
            node_pool({"cpu": UNKNOWN_STRING_VALUE}),
            existing(UNKNOWN_NUMBER_VALUE),
        ],
    )
    def test_a_pool_that_is_not_known_yet_is_said_to_be_unjudged_and_no_violation(self, pool: Given) -> None:
        verdict = judge_stack(RULE, deployment(), pool, node_group(1, name="full"))
        assert verdict.violations == ()
        assert pool.name in verdict.unjudged

    @pytest.mark.parametrize("path", [("spec", "replicas"), CHIPS, (*STRATEGY, "rollingUpdate", "maxSurge")])
    def test_a_deployment_that_is_not_known_yet_is_said_to_be_unjudged_and_no_violation(self, path: Path) -> None:
        props = with_value(deployment().props, path, UNKNOWN_NUMBER_VALUE)
        verdict = judge_stack(RULE, Given(DEPLOYMENT_TYPE, props, "server"), node_group(1))
        assert verdict.violations == ()
        assert "server: spec." in verdict.unjudged

    def test_what_another_workload_will_take_does_not_hide_a_surge_that_cannot_fit_anyway(self) -> None:
        other = deployment({"type": "Recreate"}, name="other", replicas=UNKNOWN_NUMBER_VALUE)
        verdict = judge_stack(RULE, deployment(), other, node_group(1))
        assert len(verdict.violations) == 1
        assert "other: spec.replicas" in verdict.unjudged


counts = st.one_of(st.integers(0, 12), st.integers(0, 12).map(str), st.integers(0, 150).map("{}%".format))


def pods(count: int | str, replicas: int, *, up: bool) -> int:
    """A count as Kubernetes documents it, in exact fractions."""
    text = str(count)
    exact = Fraction(int(text[:-1]), 100) * replicas if text.endswith("%") else Fraction(int(text))
    return math.ceil(exact) if up else math.floor(exact)


@given(
    surge=counts,
    unavailable=counts,
    replicas=st.integers(1, 20),
    nodes=st.integers(0, 30),
    chips=st.sampled_from([1, 4, 5]),
)
def test_the_verdict_is_that_of_plain_arithmetic(
    surge: int | str, unavailable: int | str, replicas: int, nodes: int, chips: int
) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    server = deployment(strategy, replicas=replicas, chips=chips, selector={})
    violations = in_both_passes(server, node_group(nodes, "trn1.32xlarge"))
    literally_zero = pods(surge, 100, up=True) == 0 and pods(unavailable, 100, up=True) == 0
    room = max(nodes * (16 // chips) - replicas, 0)
    needed = pods(surge, replicas, up=True)
    assert len(violations) == int(literally_zero or needed > room)
