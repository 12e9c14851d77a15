"""What the program registers, judged by every rule of the pack: the defaults are what the pack asks for."""

from collections.abc import Callable
from typing import Any

import pytest

from policy.rule import Rule
from policy.rules import RULES
from tests.policy.judging import Given, Verdict, judge, judge_stack
from tests.program.conftest import Recorder

Run = Callable[..., Recorder]


def verdicts(rule: Rule, recorder: Recorder) -> list[Verdict]:
    """The rule on each resource, and on the stack, as far as the rule takes part."""
    resources = [judge(rule, one.inputs, one.type, one.name) for one in recorder.resources if rule.judge_resource]
    if rule.judge_stack is None:
        return resources
    return [*resources, judge_stack(rule, *(Given(one.type, one.inputs, one.name) for one in recorder.resources))]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
@pytest.mark.parametrize("nodes", [1, 2])
def test_every_rule_passes_the_local_stack(
    rule: Rule, nodes: int, run_program: Run, local_stack: dict[str, Any]
) -> None:
    local_stack["nodeGroups"][0]["nodes"] = nodes
    recorder = run_program(local_stack, token="hf_" + "a" * 34)
    assert [one.violations for one in verdicts(rule, recorder) if one.violations] == []


def test_a_surge_that_the_stated_nodes_cannot_hold_is_refused(run_program: Run, local_stack: dict[str, Any]) -> None:
    recorder = run_program(local_stack)
    (pool,) = recorder.of_type(":ExistingNodeGroup")
    pool.inputs["nodes"] = 1
    (rule,) = [one for one in RULES if one.id == "rollout-capacity"]
    (violation,) = [text for one in verdicts(rule, recorder) for text in one.violations]
    assert "maxSurge comes to 1 more pods, but there is room for 0" in violation
