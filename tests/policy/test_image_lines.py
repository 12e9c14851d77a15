"""image-line-matches-accelerator and supported-image-line: which vLLM for Neuron is given which accelerator."""

import pytest
from pulumi_policy import EnforcementLevel
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policy.rule import Rule
from policy.rules.image_line_matches_accelerator import RULE as MATCHES
from policy.rules.supported_image_line import RULE as SUPPORTED
from tests.policy.fixtures import COMPLIANT_DEPLOYMENT, DEPLOYMENT_TYPE, INIT, POD, SERVER, Props, with_value, without
from tests.policy.judging import Given, judge, judge_stack

REPOSITORY = "public.ecr.aws/neuron/pytorch-inference-vllm-neuronx"
PLUGIN = "0.24.0.1.1.0-neuronx-py313-sdk2.32.0-ubuntu24.04"
CONTRADICTED = "0.16.0-neuronx-py312-sdk2.31.1-ubuntu24.04"
V0 = "0.9.1-neuronx-py310-sdk2.25.0-ubuntu22.04"
STATED = "0.13.0-neuronx-py312-sdk2.28.0-ubuntu24.04"
TYPE = "node.kubernetes.io/instance-type"
SELECTOR = (*POD, "nodeSelector")


def deployment(image: str, instance_type: str | None) -> Props:
    props = with_value(COMPLIANT_DEPLOYMENT, (*SERVER, "image"), image)
    return with_value(props, SELECTOR, {} if instance_type is None else {TYPE: instance_type})


def node_group(instance_type: str) -> Given:
    props = {"instanceTypes": [instance_type], "scalingConfig": {"maxSize": 2}}
    return Given("aws:eks/nodeGroup:NodeGroup", props, f"group-{instance_type}")


def test_the_compliant_deployment_passes_both() -> None:
    assert judge(MATCHES, COMPLIANT_DEPLOYMENT).passed
    assert judge(SUPPORTED, COMPLIANT_DEPLOYMENT).passed
    assert SUPPORTED.level is EnforcementLevel.ADVISORY


@pytest.mark.parametrize(
    "repository", [REPOSITORY, "1.dkr.ecr.us-east-1.amazonaws.com:443/team/vllm", "vllm/vllm-neuron"]
)
@pytest.mark.parametrize("tag", [PLUGIN, "0.21.0.1.0.0-neuronx-py313-sdk2.31.0-ubuntu24.04", "v1.0-neuronx-py313"])
def test_the_plugin_line_runs_on_trainium_2_and_newer_only(repository: str, tag: str) -> None:
    image = f"{repository}:{tag}"
    for instance_type in ("trn1.2xlarge", "trn1n.32xlarge", "inf2.xlarge", "inf1.xlarge"):
        [message] = judge(MATCHES, deployment(image, instance_type)).violations
        assert f"may run on {instance_type.partition('.')[0]}" in message
    for instance_type in ("trn2.3xlarge", "trn2u.48xlarge", "trn3.48xlarge", "m7i.large"):
        assert judge(MATCHES, deployment(image, instance_type)).passed


@pytest.mark.parametrize("tag", [V0, STATED, CONTRADICTED, "0.20.9-neuronx-py312"])
def test_older_lines_may_run_anywhere(tag: str) -> None:
    assert judge(MATCHES, deployment(f"{REPOSITORY}:{tag}", "inf2.xlarge")).passed


@pytest.mark.parametrize(
    "image",
    [
        "vllm/vllm-openai:v0.24.0",
        "nginx:1.27",
        f"{REPOSITORY}@sha256:00",
        f"{REPOSITORY}:latest",
        "neuron/monitor:0.24",
    ],
)
def test_other_images_and_unknown_versions_are_left_alone(image: str) -> None:
    assert judge(MATCHES, deployment(image, "inf2.xlarge")).passed
    assert judge(SUPPORTED, deployment(image, "inf2.xlarge")).passed


def test_init_containers_count_too() -> None:
    props = with_value(COMPLIANT_DEPLOYMENT, (*INIT, "image"), f"{REPOSITORY}:{PLUGIN}")
    assert "initContainers[0].image" in judge(MATCHES, props).violations[0]


def test_the_family_may_stand_in_an_affinity_of_which_every_term_counts() -> None:
    def affinity(*families: str) -> Props:
        terms = [
            {"matchExpressions": [{"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": [one]}]}
            for one in families
        ]
        return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}

    props = deployment(f"{REPOSITORY}:{PLUGIN}", None)
    assert judge(MATCHES, with_value(props, (*POD, "affinity"), affinity("trn2"))).passed
    assert judge(MATCHES, with_value(props, (*POD, "affinity"), affinity("trn2", "trn1"))).violations


def test_a_pool_of_the_stack_says_the_family_where_the_pod_does_not() -> None:
    server = Given(DEPLOYMENT_TYPE, deployment(f"{REPOSITORY}:{PLUGIN}", None))
    assert judge(MATCHES, server.props).passed
    assert judge_stack(MATCHES, server).passed
    assert judge_stack(MATCHES, server, node_group("trn2.3xlarge")).passed
    assert judge_stack(MATCHES, server, node_group("trn2.3xlarge"), node_group("inf2.xlarge")).urns == (server.urn,)
    said_before = Given(DEPLOYMENT_TYPE, deployment(f"{REPOSITORY}:{PLUGIN}", "inf2.xlarge"))
    assert judge_stack(MATCHES, said_before, node_group("inf2.xlarge")).passed


@pytest.mark.parametrize("tag", [V0, "0.10.2-neuronx-py311", "0.7.2-neuronx-py310-sdk2.24.1-ubuntu22.04"])
@pytest.mark.parametrize("instance_type", ["inf2.xlarge", "trn2.3xlarge", None])
def test_lines_before_0_11_are_out_of_support_everywhere(tag: str, instance_type: str | None) -> None:
    props = deployment(f"{REPOSITORY}:{tag}", instance_type)
    [message] = judge(SUPPORTED, props).violations
    assert "is out of support" in message
    # Said by the resource pass, so not again by the stack's.
    assert judge_stack(SUPPORTED, Given(DEPLOYMENT_TYPE, props), node_group("inf2.xlarge")).passed


@pytest.mark.parametrize(
    ("instance_type", "doubtful"), [("trn1.2xlarge", True), ("inf2.xlarge", True), ("trn2.3xlarge", False)]
)
def test_0_16_is_contradicted_on_the_first_generation_only(instance_type: str, doubtful: bool) -> None:
    props = deployment(f"{REPOSITORY}:{CONTRADICTED}", instance_type)
    assert bool(judge(SUPPORTED, props).violations) is doubtful
    server = Given(DEPLOYMENT_TYPE, without(props, SELECTOR))
    assert judge(SUPPORTED, server.props).passed
    assert bool(judge_stack(SUPPORTED, server, node_group(instance_type)).violations) is doubtful


@pytest.mark.parametrize("tag", ["0.11.0-neuronx-py312-sdk2.27.1-ubuntu24.04", STATED, "0.14.0-neuronx-py312"])
def test_lines_that_nothing_speaks_against_pass(tag: str) -> None:
    assert judge(SUPPORTED, deployment(f"{REPOSITORY}:{tag}", "inf2.xlarge")).passed


@pytest.mark.parametrize("rule", [MATCHES, SUPPORTED])
def test_unknown_images_and_selectors_are_said_to_be_unjudged(rule: Rule) -> None:
    unknown_type = with_value(deployment(f"{REPOSITORY}:{CONTRADICTED}", "x"), (*SELECTOR, TYPE), UNKNOWN_STRING_VALUE)
    for props, seen in (
        (deployment(UNKNOWN_STRING_VALUE, "inf2.xlarge"), "containers[0].image"),
        (unknown_type, "nodeSelector"),
    ):
        verdict = judge(rule, props)
        assert verdict.violations == ()
        assert seen in verdict.unjudged
