"""What the pack says of a foreign program is what its file expects, no more and no less."""

import pytest

from policy.rules import RULES
from tests.policy.programs import PROGRAMS, Program


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_foreign_program_gets_the_expected_verdicts(program: Program) -> None:
    found = set().union(*(program.findings(rule) for rule in RULES))
    false_positives, misses = sorted(found - program.expected), sorted(program.expected - found)
    assert (false_positives, misses) == ([], []), f"{len(false_positives)} false positives, {len(misses)} misses"
    unjudged = {rule.id for rule in RULES if any(verdict.unjudged for verdict in program.verdicts(rule))}
    assert unjudged == program.unjudged


def test_the_corpus_breaks_every_rule_and_has_programs_that_break_none() -> None:
    broken = {rule for program in PROGRAMS for rule, _ in program.expected}
    assert broken == {rule.id for rule in RULES}
    assert len([program for program in PROGRAMS if not program.expected]) >= len(PROGRAMS) // 5
