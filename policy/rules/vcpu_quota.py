"""vcpu-quota: what the stack may start at its largest is within the account's vCPU quota."""

import json
from collections.abc import Iterator, Mapping

from pulumi_policy import PolicyConfigSchema, Severity

from neuron.errors import ImpossibleInputError
from neuron.quota import BUCKET_KEYS, QUOTA_CODES, Bucket, Quota, check_quotas, declared_quotas, needs
from policy.capacity import capacity
from policy.resources import Stack
from policy.rule import Finding, Rule, Unjudged, Violation

_CONFIG_KEY = "quotas"
_KEYS: Mapping[Bucket, str] = {bucket: key for key, bucket in BUCKET_KEYS.items()}


def judge_stack(stack: Stack) -> Iterator[Finding]:
    """One finding for each quota that is too small, and for each that nothing declares."""
    found = capacity(stack)
    try:
        needed = needs(found.groups, found.pools)
    except ImpossibleInputError as error:
        yield Violation(
            f"an update setting cannot be read: {error}", "the stack's node groups", "correct updateConfig", None
        )
        return
    for verdict in check_quotas(needed, _declared(stack)):
        if verdict.fits is None:
            yield Unjudged(
                f"{verdict}: no quota is declared, and the pack reads none from AWS, so this was not judged; declare "
                f"{_example(verdict.bucket)} in the configuration of the stack or of vcpu-quota"
            )
        elif not verdict.fits:
            yield Violation(
                what=str(verdict),
                where="the stack's node groups and Karpenter pools",
                fix="lower the maximum or the limit, set updateStrategy MINIMAL, or have the quota raised",
                subject=None,
            )


def _declared(stack: Stack) -> dict[Bucket, Quota]:
    """The quotas that the stack file declares, and over them those of the rule's configuration."""
    try:
        stated = json.loads(stack.own_config.get(_CONFIG_KEY, "null"))
    # Not JSON, a number of too many digits, or nested too deep.
    except (ValueError, RecursionError):
        stated = None
    own = declared_quotas(stated, "declared in the stack file")
    return own | declared_quotas(stack.config.get(_CONFIG_KEY), "declared in the policy configuration")


def _example(bucket: Bucket) -> str:
    return f'{{"{_CONFIG_KEY}": {{"{_KEYS[bucket]}": <vCPUs of {QUOTA_CODES[bucket]}>}}}}'


RULE = Rule(
    id="vcpu-quota",
    title="The stack fits the account's vCPU quota",
    severity=Severity.HIGH,
    why=(
        "a quota of 8 Trn vCPUs is one trn1.2xlarge: the second, which an update starts before the first stops, ends "
        "in VcpuLimitExceeded, an event of the Auto Scaling group that no preview shows."
    ),
    remediation=(
        f"Declare the quotas in vCPUs, with the keys {', '.join(BUCKET_KEYS)}: as {_CONFIG_KEY} in the stack's own "
        f"configuration (`<project>:{_CONFIG_KEY}`), or in that of this rule, which wins.",
        "Keep node groups at their maximum, their update surge and the cpu limits of Karpenter pools within them.",
        "Where there is room for the nodes only, set updateConfig.updateStrategy to MINIMAL, or have the quota raised.",
    ),
    judge_stack=judge_stack,
    config=PolicyConfigSchema(
        properties={
            _CONFIG_KEY: {
                "type": "object",
                "properties": {key: {"type": "number", "minimum": 0} for key in BUCKET_KEYS},
                "additionalProperties": False,
            }
        }
    ),
)
