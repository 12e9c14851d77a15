"""no-open-ssh: every kind of rule, every spelling of everyone, every way to cover port 22."""

from typing import Any

import pytest
from pulumi_policy.proxy import UNKNOWN_NUMBER_VALUE, UNKNOWN_OBJECT_VALUE, UNKNOWN_STRING_VALUE

from policy.rules.no_open_ssh import RULE
from tests.policy.fixtures import Props
from tests.policy.judging import judge

GROUP = "aws:ec2/securityGroup:SecurityGroup"
NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"


def inline(protocol: Any, start: Any, end: Any, *networks: str) -> Props:
    v4 = [one for one in networks if ":" not in one]
    v6 = [one for one in networks if ":" in one]
    ports = {"protocol": protocol, "fromPort": start, "toPort": end}
    return {"ingress": [ports | {"cidrBlocks": v4, "ipv6CidrBlocks": v6}]}


@pytest.mark.parametrize(
    ("resource_type", "props"),
    [
        (GROUP, inline("tcp", 22, 22, "0.0.0.0/0")),
        ("aws:ec2/defaultSecurityGroup:DefaultSecurityGroup", inline("tcp", 22, 22, "0.0.0.0/0")),
        (
            "aws:ec2/securityGroupRule:SecurityGroupRule",
            {"type": "ingress", "protocol": "tcp", "fromPort": 22, "toPort": 22, "cidrBlocks": ["0.0.0.0/0"]},
        ),
        (
            "aws:ec2/securityGroupRule:SecurityGroupRule",
            {"type": "ingress", "protocol": "-1", "fromPort": 0, "toPort": 0, "ipv6CidrBlocks": ["::/0"]},
        ),
        (
            "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
            {"ipProtocol": "tcp", "fromPort": 22, "toPort": 22, "cidrIpv4": "0.0.0.0/0"},
        ),
        ("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule", {"ipProtocol": "-1", "cidrIpv6": "::/0"}),
        (
            "aws-native:ec2:SecurityGroup",
            {"securityGroupIngress": [{"ipProtocol": "tcp", "fromPort": 22, "toPort": 22, "cidrIp": "0.0.0.0/0"}]},
        ),
        (
            "aws-native:ec2:SecurityGroupIngress",
            {"ipProtocol": "tcp", "fromPort": 0, "toPort": 1024, "cidrIpv6": "::/0"},
        ),
    ],
)
def test_every_kind_of_rule_is_judged(resource_type: str, props: Props) -> None:
    [message] = judge(RULE, props, resource_type, "nodes").violations
    assert message.startswith(f"{resource_type} nodes (")
    assert "may reach port 22" in message
    assert "Session Manager" in message


@pytest.mark.parametrize(
    ("protocol", "start", "end", "covers"),
    [
        ("tcp", 22, 22, True),
        ("TCP", 22.0, 22.0, True),
        ("6", 20, 30, True),
        (6, 20, 30, True),
        ("tcp", 0, 65535, True),
        ("tcp", "22", "22", True),
        ("-1", 0, 0, True),
        (-1, None, None, True),
        ("all", 443, 443, True),
        ("tcp", None, None, True),
        ("tcp", 23, 65535, False),
        ("tcp", 0, 21, False),
        ("tcp", 443, 443, False),
        ("udp", 22, 22, False),
        ("icmp", -1, -1, False),
    ],
)
def test_ranges_and_protocols_cover_port_22_as_aws_reads_them(
    protocol: Any, start: Any, end: Any, covers: bool
) -> None:
    assert bool(judge(RULE, inline(protocol, start, end, "0.0.0.0/0"), GROUP).violations) is covers


@pytest.mark.parametrize("network", ["0.0.0.0/0", "::/0", "0::/0", "0:0:0:0:0:0:0:0/0", "10.0.0.0/0"])
def test_everyone_can_be_spelt_in_several_ways(network: str) -> None:
    assert judge(RULE, inline("tcp", 22, 22, network), GROUP).violations


@pytest.mark.parametrize("networks", [(), ("10.0.0.0/8",), ("203.0.113.7/32", "fd00::/8"), ("nonsense",)])
def test_a_limited_network_may_use_ssh(networks: tuple[str, ...]) -> None:
    assert judge(RULE, inline("tcp", 22, 22, *networks), GROUP).passed


def test_each_open_network_is_one_finding() -> None:
    assert len(judge(RULE, inline("tcp", 22, 22, "10.0.0.0/8", "0.0.0.0/0", "::/0"), GROUP).violations) == 2


def test_what_goes_out_and_what_comes_from_a_group_is_left_alone() -> None:
    egress = {"type": "egress", "protocol": "-1", "fromPort": 0, "toPort": 0, "cidrBlocks": ["0.0.0.0/0"]}
    assert judge(RULE, egress, "aws:ec2/securityGroupRule:SecurityGroupRule").passed
    assert judge(RULE, {"egress": inline("-1", 0, 0, "0.0.0.0/0")["ingress"]}, GROUP).passed
    by_group = {"ipProtocol": "tcp", "fromPort": 22, "toPort": 22, "referencedSecurityGroupId": "sg-1"}
    assert judge(RULE, by_group, "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule").passed
    out = {"ipProtocol": "-1", "cidrIpv4": "0.0.0.0/0"}
    assert judge(RULE, out, "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule").passed


@pytest.mark.parametrize(
    ("resource_type", "sources"),
    [
        (NODE_GROUP, "sourceSecurityGroupIds"),
        ("eks:index:ManagedNodeGroup", "sourceSecurityGroupIds"),
        ("aws-native:eks:Nodegroup", "sourceSecurityGroups"),
    ],
)
def test_remote_access_with_a_key_needs_source_groups(resource_type: str, sources: str) -> None:
    for access in ({"ec2SshKey": "key"}, {"ec2SshKey": "key", sources: []}):
        [message] = judge(RULE, {"remoteAccess": access}, resource_type).violations
        assert "opens port 22 to 0.0.0.0/0" in message
    for access in ({"ec2SshKey": "key", sources: ["sg-1"]}, {sources: ["sg-1"]}, {"ec2SshKey": ""}, {}, None):
        assert judge(RULE, {"remoteAccess": access}, resource_type).passed


def test_a_key_on_self_managed_nodes_opens_no_port() -> None:
    assert judge(RULE, {"keyName": "key", "instanceType": "trn1.2xlarge"}, "eks:index:NodeGroupV2").passed


@pytest.mark.parametrize(
    ("props", "seen"),
    [
        (inline("tcp", 22, 22, UNKNOWN_STRING_VALUE), "cidrBlocks[0]"),
        (inline("tcp", UNKNOWN_NUMBER_VALUE, 22, "0.0.0.0/0"), "fromPort"),
        (inline(UNKNOWN_STRING_VALUE, 22, 22, "0.0.0.0/0"), "protocol"),
        ({"ingress": UNKNOWN_OBJECT_VALUE}, "ingress"),
    ],
)
def test_unknown_values_are_said_to_be_unjudged_and_break_nothing(props: Props, seen: str) -> None:
    verdict = judge(RULE, props, GROUP)
    assert (verdict.violations, seen in verdict.unjudged) == ((), True)


def test_unknown_source_groups_and_directions_break_nothing() -> None:
    access = {"ec2SshKey": "key", "sourceSecurityGroupIds": UNKNOWN_OBJECT_VALUE}
    verdict = judge(RULE, {"remoteAccess": access}, NODE_GROUP)
    assert (verdict.violations, "sourceSecurityGroupIds" in verdict.unjudged) == ((), True)
    rule = {"type": UNKNOWN_STRING_VALUE, "protocol": "-1", "cidrBlocks": ["0.0.0.0/0"]}
    verdict = judge(RULE, rule, "aws:ec2/securityGroupRule:SecurityGroupRule")
    assert (verdict.violations, "type" in verdict.unjudged) == ((), True)


def test_an_unknown_rule_hides_no_open_one() -> None:
    rules = inline("tcp", 22, 22, "0.0.0.0/0")["ingress"] + inline("tcp", 22, 22, UNKNOWN_STRING_VALUE)["ingress"]
    assert len(judge(RULE, {"ingress": rules}, GROUP).violations) == 1
