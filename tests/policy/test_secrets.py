"""No rule prints a token, wherever in a program it stands."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from policy.rules import RULES
from tests.policy.fixtures import Path
from tests.policy.judging import Given
from tests.policy.programs import PROGRAMS, Program, paths

# Every place of the corpus that holds a text.
PLACES = [
    (program, resource, keys, value)
    for program in PROGRAMS
    for resource in program.resources
    for keys, value in paths(resource.props)
    if isinstance(value, str)
]
tokens = st.text("abcdefghijABCDEFGHIJ0123456789", min_size=20, max_size=40).map(lambda text: f"hf_{text}")
spellings = st.sampled_from(["{token}", "{value}{token}", "{token} {value}", "{value}:{token}", "a={token}\n"])


@settings(max_examples=150, deadline=None)
@given(place=st.sampled_from(PLACES), token=tokens, spelling=spellings)
def test_a_token_in_any_text_of_a_program_comes_out_of_no_rule(
    place: tuple[Program, Given, Path, Any], token: str, spelling: str
) -> None:
    program, resource, keys, value = place
    spoilt = program.with_value(resource, keys, spelling.format(token=token, value=value))
    for rule in RULES:
        for verdict in spoilt.verdicts(rule):
            said = [*verdict.violations, verdict.unjudged]
            assert not any(token in text or token[3:] in text for text in said), (rule.id, said)


@settings(max_examples=50, deadline=None)
@given(place=st.sampled_from(PLACES), token=tokens)
def test_a_token_as_a_key_or_a_name_comes_out_of_no_rule(place: tuple[Program, Given, Path, Any], token: str) -> None:
    program, resource, keys, value = place
    beside = program.with_value(resource, (*keys[:-1], keys[-1] if isinstance(keys[-1], int) else token), value)
    for rule in RULES:
        for verdict in beside.verdicts(rule):
            assert not any(token[3:] in text for text in (*verdict.violations, verdict.unjudged)), rule.id
