"""nodepool-limits: a Karpenter pool for accelerators says how much it may start."""

from collections.abc import Iterator

from pulumi_policy import Severity

from policy.accelerator_pools import accelerator_pools
from policy.resources import Resource
from policy.rule import Rule, Violation


def judge(resource: Resource) -> Iterator[Violation]:
    """One violation for each pool without a limit."""
    for manifest in accelerator_pools(resource):
        limits = manifest.node.at("spec", "limits")
        if limits.is_unknown() or any(not node.is_absent() for _, node in limits.fields()):
            continue
        yield Violation(
            what="no limits: the pool may start nodes until the account's quota ends",
            where=f"{manifest} ({limits.path})",
            fix='set spec.limits, such as {cpu: "16"} or {aws.amazon.com/neuron: "2"}',
            subject=manifest,
        )


RULE = Rule(
    id="nodepool-limits",
    title="A Karpenter pool for accelerators has limits",
    severity=Severity.HIGH,
    why=(
        "without limits pods that nobody expected start nodes at $0.76 (inf2.xlarge) to $24.78 (trn1n.32xlarge) an "
        "hour each, up to the account's quota, and then take that quota from the other pools."
    ),
    remediation=(
        "Set spec.limits in cpu, aws.amazon.com/neuron or nodes to what the stack may cost.",
        "Keep the sum of all pools and node groups within the vCPU quota: vcpu-quota counts with these limits.",
    ),
    judge_resource=judge,
)
