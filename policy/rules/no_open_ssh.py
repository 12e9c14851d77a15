"""no-open-ssh: nothing lets the whole Internet reach port 22."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_network
from types import MappingProxyType

from pulumi_policy import Severity

from policy.resources import Resource
from policy.rule import Rule, Violation
from policy.values import Node

_SSH_PORT = 22
# By name and by number; -1 is every protocol, whose ports AWS ignores.
_TCP = frozenset({"tcp", "6"})
_EVERY_PROTOCOL = frozenset({"-1", "all"})


@dataclass(frozen=True)
class _Shape:
    """How a resource type states ingress: under which lists (none: in itself), and in which fields."""

    lists: tuple[str, ...]
    protocol: str
    ranges: tuple[str, ...]


_INLINE = _Shape(("ingress",), "protocol", ("cidrBlocks", "ipv6CidrBlocks"))
_SHAPES: Mapping[str, _Shape] = MappingProxyType(
    {
        "aws:ec2/securityGroup:SecurityGroup": _INLINE,
        "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup": _INLINE,
        "aws:ec2/securityGroupRule:SecurityGroupRule": _Shape((), "protocol", ("cidrBlocks", "ipv6CidrBlocks")),
        "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": _Shape((), "ipProtocol", ("cidrIpv4", "cidrIpv6")),
        "aws-native:ec2:SecurityGroup": _Shape(("securityGroupIngress",), "ipProtocol", ("cidrIp", "cidrIpv6")),
        "aws-native:ec2:SecurityGroupIngress": _Shape((), "ipProtocol", ("cidrIp", "cidrIpv6")),
    }
)
# Where a node group names the security groups that its SSH key may come from.
_SOURCES: Mapping[str, str] = MappingProxyType(
    {
        "aws:eks/nodeGroup:NodeGroup": "sourceSecurityGroupIds",
        "eks:index:ManagedNodeGroup": "sourceSecurityGroupIds",
        "aws-native:eks:Nodegroup": "sourceSecurityGroups",
    }
)


def judge(resource: Resource) -> Iterator[Violation]:
    """One violation for each open rule, and for remote access of a node group without sources."""
    if resource.type in _SHAPES:
        yield from _open_rules(resource, _SHAPES[resource.type])
    if resource.type in _SOURCES:
        yield from _open_remote_access(resource, _SOURCES[resource.type])


def _open_rules(resource: Resource, shape: _Shape) -> Iterator[Violation]:
    # Only SecurityGroupRule says its direction; what holds ingress rules alone has no such field.
    direction = resource.props.at("type")
    if direction.is_unknown() or direction.text() == "egress":
        return
    for rule in _ingress(resource, shape):
        if not _covers_ssh(rule, shape.protocol):
            continue
        for source in _sources(rule.at(name) for name in shape.ranges):
            if _is_everyone(source.text() or ""):
                yield Violation(
                    what=f"{source.text()} may reach port {_SSH_PORT}",
                    where=f"{resource} ({source.path})",
                    fix="remove the rule and use Session Manager, or allow only the network that needs it",
                    subject=resource,
                )


def _ingress(resource: Resource, shape: _Shape) -> Iterator[Node]:
    if not shape.lists:
        yield resource.props
    for name in shape.lists:
        yield from resource.props.at(name).elements()


def _covers_ssh(rule: Node, protocol_field: str) -> bool:
    """Whether protocol and ports admit SSH. What is not known yet admits nothing, and is noted."""
    protocol = str(rule.at(protocol_field).scalar()).lower()
    if protocol in _EVERY_PROTOCOL:
        return True
    first, last = rule.at("fromPort"), rule.at("toPort")
    if protocol not in _TCP or first.is_unknown() or last.is_unknown():
        return False
    start, end = first.integer(), last.integer()
    # -1 as a port is every port.
    return start in (None, -1) or end in (None, -1) or start <= _SSH_PORT <= end


def _sources(nodes: Iterable[Node]) -> Iterator[Node]:
    for node in nodes:
        elements = list(node.elements())
        yield from elements or [node]


def _is_everyone(network: str) -> bool:
    """Whether it is 0.0.0.0/0 or ::/0, however it is spelt."""
    try:
        return ip_network(network, strict=False).prefixlen == 0
    except ValueError:
        return False


def _open_remote_access(resource: Resource, sources_field: str) -> Iterator[Violation]:
    access = resource.props.at("remoteAccess")
    key, sources = access.at("ec2SshKey"), access.at(sources_field)
    if not key.is_present() or key.text() == "" or sources.is_unknown() or any(sources.elements()):
        return
    yield Violation(
        what=f"remote access with a key and no {sources_field} opens port {_SSH_PORT} to 0.0.0.0/0",
        where=f"{resource} ({access.path})",
        fix=f"remove {access.path} and use Session Manager, or name {sources.path}",
        subject=resource,
    )


RULE = Rule(
    id="no-open-ssh",
    title="Port 22 is not open to the Internet",
    severity=Severity.CRITICAL,
    why=(
        "everyone on the Internet may try keys and exploits on the nodes: the measured system opened port 22 to the "
        "world by allowing SSH for its node group without source security groups."
    ),
    remediation=(
        "Take the rule out. Session Manager gives a shell on a node without any open port.",
        "Where SSH is needed, allow the network or security group of the bastion only.",
        "In a node group, name the source security groups beside the key.",
    ),
    judge_resource=judge,
)
