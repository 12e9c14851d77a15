"""The rules of the pack. To add one: write its file here and its row below."""

from policy.rule import Rule
from policy.rules import memory_limits, no_plaintext_hf_token, probes, rollout_capacity

RULES: tuple[Rule, ...] = (
    memory_limits.RULE,
    probes.RULE,
    no_plaintext_hf_token.RULE,
    rollout_capacity.RULE,
)
