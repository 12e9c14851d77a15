"""pinned-ami: nodes get the AMI that was tested, and one that exists."""

from collections.abc import Iterator

from pulumi_policy import PolicyConfigSchema, Severity

from neuron.ami import LAST_RECORDED_DATE
from policy.ami_references import ami_references, ami_selector_terms, ec2_node_classes
from policy.config import texts
from policy.resources import Resource
from policy.rule import Rule, Violation

_CONFIG_KEY = "goneAmis"
_LATEST = "latest"


def judge(resource: Resource) -> Iterator[Violation]:
    """One violation for each alias that moves, and for each AMI that is known to be gone."""
    for node_class in ec2_node_classes(resource):
        for term in ami_selector_terms(node_class):
            alias = term.at("alias")
            if (alias.text() or "").rpartition("@")[2] == _LATEST:
                yield Violation(
                    what=f"alias {alias.text()} moves with every release",
                    where=f"{node_class} ({alias.path})",
                    fix=f"name the release that was tested, such as al2023@v{LAST_RECORDED_DATE}",
                    subject=node_class,
                )
    gone = texts(resource.config, _CONFIG_KEY)
    for reference in ami_references(resource):
        if reference.id in gone:
            yield Violation(
                what=f"{reference.id} is known to be gone",
                where=reference.where,
                fix="name a release (release version, or al2023@v<date>) and let its id be looked up",
                subject=reference.owner,
            )


RULE = Rule(
    id="pinned-ami",
    title="The AMI of a node is pinned, and exists",
    severity=Severity.HIGH,
    why=(
        "the AMI brings the Neuron driver: 2.29, which a newer release carries, refuses runtimes older than 2.33, and "
        "Karpenter replaces running nodes when `latest` moves. An id that is gone ends in InvalidAMIID.NotFound."
    ),
    remediation=(
        "In an EC2NodeClass name the release: alias al2023@v<date>.",
        "In a managed node group name release_version instead of an AMI id.",
        f"List ids that were found to be gone under {_CONFIG_KEY} in the rule's configuration.",
    ),
    judge_resource=judge,
    config=PolicyConfigSchema(properties={_CONFIG_KEY: {"type": "array", "items": {"type": "string"}, "default": []}}),
)
