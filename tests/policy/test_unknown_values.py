"""A value that is not known yet neither excuses nor accuses: for every rule, and for every value that it might read."""

import re

import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policy.rule import Rule
from policy.rules import RULES
from tests.policy.programs import PROGRAMS, Finding, Program, paths


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_what_an_unknown_value_hides_is_said_and_nothing_is_made_up(rule: Rule) -> None:
    hidden = 0
    for program in PROGRAMS:
        found = places(program.findings(rule))
        # Beside the programs that break the rule, those that break none: nothing may be found in them either.
        if program.expected and not found:
            continue
        for resource in program.resources:
            for keys, _ in paths(resource.props):
                masked = program.with_value(resource, keys, UNKNOWN_STRING_VALUE)
                left = places(masked.findings(rule))
                assert left <= found, f"{program.name}, {resource.name}: {keys} unknown, yet {left - found} is found"
                if left != found:
                    hidden += 1
                    assert is_said(masked, rule), f"{program.name}, {resource.name}: {keys} unknown, and nobody says so"
    assert hidden, "no value of the corpus decides this rule"


def is_said(program: Program, rule: Rule) -> bool:
    """Whether the rule says in some pass that something is not known yet."""
    return any("not yet known, so not judged" in verdict.unjudged for verdict in program.verdicts(rule))


def places(findings: set[Finding]) -> set[str]:
    """The places without the names of the objects, which may be what is not known."""
    return {re.sub(r"(container)? [^ (,]+", r"\1", place) for _, place in findings}
