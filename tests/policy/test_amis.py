"""pinned-ami and verified-ami: aliases that move, ids that are gone, ids that nobody looked up."""

import pytest
from pulumi_policy import EnforcementLevel
from pulumi_policy.proxy import UNKNOWN_OBJECT_VALUE, UNKNOWN_STRING_VALUE

from policy.rules.pinned_ami import RULE as PINNED
from policy.rules.verified_ami import RULE as VERIFIED
from tests.policy.fixtures import CUSTOM_RESOURCE_TYPE, Props, custom_resource
from tests.policy.judging import Given, judge, judge_stack

AMI = "ami-0123456789abcdef0"


def node_class(*terms: Props) -> Given:
    spec = {"role": "nodes", "amiSelectorTerms": list(terms)}
    return Given(CUSTOM_RESOURCE_TYPE, custom_resource("karpenter.k8s.aws/v1", "EC2NodeClass", spec, "neuron"), "class")


PLACES = [
    Given("aws:ec2/launchTemplate:LaunchTemplate", {"imageId": AMI}),
    Given("aws:ec2/launchConfiguration:LaunchConfiguration", {"imageId": AMI}),
    Given("aws:ec2/instance:Instance", {"ami": AMI}),
    Given("aws-native:ec2:LaunchTemplate", {"launchTemplateData": {"imageId": AMI}}),
    Given("aws-native:ec2:Instance", {"imageId": AMI}),
    Given("eks:index:ManagedNodeGroup", {"amiId": AMI}),
    Given("eks:index:NodeGroupV2", {"amiId": AMI}),
    Given("eks:index:Cluster", {"nodeGroupOptions": {"amiId": AMI}}),
    node_class({"id": AMI}),
]
IDS = [one.type for one in PLACES]


@pytest.mark.parametrize("alias", ["al2023@v20260625", "bottlerocket@v1.44.0"])
def test_a_release_is_pinned(alias: str) -> None:
    assert judge(PINNED, node_class({"alias": alias}).props, CUSTOM_RESOURCE_TYPE).passed
    assert judge_stack(VERIFIED, node_class({"alias": alias})).passed


def test_the_alias_latest_moves() -> None:
    [message] = judge(PINNED, node_class({"alias": "al2023@latest"}).props, CUSTOM_RESOURCE_TYPE).violations
    assert "EC2NodeClass serving/neuron (spec.amiSelectorTerms[0].alias): alias al2023@latest moves" in message
    assert "al2023@v2026" in message


def test_selection_by_tag_and_other_kinds_are_left_alone() -> None:
    assert judge(PINNED, node_class({"tags": {"release": "latest"}}).props, CUSTOM_RESOURCE_TYPE).passed
    other = custom_resource("example.com/v1", "EC2NodeClass", {"amiSelectorTerms": [{"alias": "al2023@latest"}]})
    assert judge(PINNED, other, CUSTOM_RESOURCE_TYPE).passed


@pytest.mark.parametrize("place", PLACES, ids=IDS)
def test_an_ami_that_is_known_to_be_gone_is_refused_wherever_it_stands(place: Given) -> None:
    assert judge(PINNED, place.props, place.type).passed
    [message] = judge(PINNED, place.props, place.type, config={"goneAmis": [AMI]}).violations
    assert f"{AMI} is known to be gone" in message
    assert judge(PINNED, place.props, place.type, config={"goneAmis": ["ami-00000000"]}).passed


@pytest.mark.parametrize("place", PLACES, ids=IDS)
def test_a_literal_id_that_nothing_has_checked_is_an_advice(place: Given) -> None:
    assert VERIFIED.level is EnforcementLevel.ADVISORY
    verdict = judge_stack(VERIFIED, place)
    assert f"{AMI} is a literal that nothing has checked" in verdict.violations[0]
    assert verdict.urns == (place.urn,)
    assert judge_stack(VERIFIED, place, config={"checkedAmis": [AMI]}).passed


def test_an_id_that_another_resource_gives_is_no_literal() -> None:
    copy = Given("aws:ec2/amiCopy:AmiCopy", {"name": "copy"}, "copy")
    template = Given("aws:ec2/launchTemplate:LaunchTemplate", {"imageId": AMI}, "template", {"imageId": [copy]})
    assert judge_stack(VERIFIED, copy, template).passed


@pytest.mark.parametrize("image", [None, "", "resolve:ssm:/aws/service/x", "amigo-12345678"])
def test_what_is_no_id_is_left_alone(image: object) -> None:
    assert judge_stack(VERIFIED, Given("aws:ec2/launchTemplate:LaunchTemplate", {"imageId": image})).passed


def test_unknown_ids_and_terms_are_said_to_be_unjudged() -> None:
    template = Given("aws:ec2/launchTemplate:LaunchTemplate", {"imageId": UNKNOWN_STRING_VALUE}, "template")
    verdict = judge_stack(VERIFIED, template)
    assert (verdict.violations, "template: imageId" in verdict.unjudged) == ((), True)
    spec = {"amiSelectorTerms": UNKNOWN_OBJECT_VALUE}
    props = custom_resource("karpenter.k8s.aws/v1", "EC2NodeClass", spec)
    verdict = judge(PINNED, props, CUSTOM_RESOURCE_TYPE)
    assert (verdict.violations, "amiSelectorTerms" in verdict.unjudged) == ((), True)


def test_an_unknown_term_hides_no_other() -> None:
    given = node_class({"alias": UNKNOWN_STRING_VALUE}, {"alias": "al2023@latest"})
    assert len(judge(PINNED, given.props, CUSTOM_RESOURCE_TYPE).violations) == 1
