"""verified-ami (advisory): an AMI id that stands in the program was looked up by somebody."""

from collections.abc import Iterator

from pulumi_policy import EnforcementLevel, PolicyConfigSchema, Severity

from policy.ami_references import ami_references
from policy.config import texts
from policy.resources import Stack
from policy.rule import Rule, Violation

_CONFIG_KEY = "checkedAmis"


def judge_stack(stack: Stack) -> Iterator[Violation]:
    """One violation for each id that is neither another resource's output nor listed as checked.

    Only the stack tells where a value comes from. What a look-up of the program returned cannot be told from a literal:
    such an id is listed, or the release is named instead.
    """
    checked = texts(stack.config, _CONFIG_KEY)
    for reference in (one for resource in stack.resources for one in ami_references(resource)):
        if not reference.is_derived and reference.id not in checked:
            yield Violation(
                what=f"{reference.id} is a literal that nothing has checked",
                where=reference.where,
                fix=f"name a release instead, or list the id under {_CONFIG_KEY} once it was looked up",
                subject=reference.owner,
            )


RULE = Rule(
    id="verified-ami",
    title="A literal AMI id has been checked",
    severity=Severity.LOW,
    why=(
        "an id exists in 1 region only and does not say which driver it brings: creating the measured node group "
        "failed at first on a hard-coded id (InvalidAMIID.NotFound)."
    ),
    remediation=(
        "Name the release: release_version in a node group, alias al2023@v<date> in an EC2NodeClass.",
        "Or look the id up in Systems Manager, below /aws/service/eks/optimized-ami/.",
        f"List ids that were looked up under {_CONFIG_KEY} in the rule's configuration.",
    ),
    judge_stack=judge_stack,
    level=EnforcementLevel.ADVISORY,
    config=PolicyConfigSchema(properties={_CONFIG_KEY: {"type": "array", "items": {"type": "string"}, "default": []}}),
)
