"""autoscaler-owns-replicas: where an autoscaler sets the replicas, the program does not."""

import re
from collections.abc import Iterator

from pulumi_policy import Severity

from policy.autoscalers import autoscalers
from policy.manifests import ObjectKey, manifests
from policy.resources import Resource, Stack
from policy.rule import Rule, Violation

# Ways to write the path, and those of the objects that hold it, to ignore_changes.
_IGNORES_REPLICAS = re.compile(r"""(spec|\["spec"\])(\.replicas|\.\*|\["replicas"\]|\["\*"\])?|\*""")


def judge_stack(stack: Stack) -> Iterator[Violation]:
    """One violation for each target of an autoscaler that states its replicas."""
    scalers: dict[ObjectKey, str] = {
        one.target: str(one.manifest) for resource in stack.resources for one in autoscalers(resource)
    }
    for resource in stack.resources if scalers else ():
        if _ignores_replicas(resource):
            continue
        # The API server fills in replicas, and the autoscaler changes them: only what was stated counts.
        for manifest in manifests(resource):
            replicas = manifest.node.at("spec", "replicas")
            scaler = scalers.get(manifest.key) if not replicas.is_absent() else None
            if scaler and replicas.is_present() and manifest.states("spec", "replicas"):
                yield Violation(
                    what=f"spec.replicas is set to {replicas.integer()}, and {scaler} sets it too",
                    where=f"{manifest} (spec.replicas)",
                    fix='leave spec.replicas out, or give the resource ignore_changes=["spec.replicas"]',
                    subject=manifest,
                )


def _ignores_replicas(resource: Resource) -> bool:
    return any(_IGNORES_REPLICAS.fullmatch(path) for path in resource.ignore_changes)


RULE = Rule(
    id="autoscaler-owns-replicas",
    title="Replicas are left to the autoscaler",
    severity=Severity.MEDIUM,
    why=(
        "each update would put the number back, in the middle of the load that raised it: three replicas become one, "
        "and each of the others then needs a start of 41 s to 4 min 9 s."
    ),
    remediation=(
        "Leave spec.replicas out of the workload; Kubernetes starts with 1 and the autoscaler takes over.",
        'Where a chart or a helper sets it, give the resource ignore_changes=["spec.replicas"].',
    ),
    judge_stack=judge_stack,
)
