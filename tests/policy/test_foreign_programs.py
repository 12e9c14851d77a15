"""The corpus of foreign programs: what the pack says of each is what its file expects, no more and no less."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from policy.rules import RULES
from tests.policy.judging import Given, Verdict, judge, judge_stack

PROGRAMS = sorted((Path(__file__).parent / "corpus").glob("*.yaml"))
# A rule's id and the place that its message names.
Finding = tuple[str, str]


def load(file: Path) -> Any:
    return yaml.safe_load(file.read_text())


def resources(program: Mapping[str, Any]) -> list[Given]:
    """The program's resources; a manifest's type token is the one that Pulumi gives it."""
    made: dict[str, Given] = {}
    for entry in program["resources"]:
        manifest = entry.get("manifest")
        if manifest:
            version = manifest["apiVersion"]
            token = f"kubernetes:{'core/v1' if version == 'v1' else version}:{manifest['kind']}"
            made[f"{token} {manifest['metadata']['name']}"] = Given(token, manifest, manifest["metadata"]["name"])
            continue
        named = {one.name: one for one in made.values()}
        dependencies = {key: [named[one] for one in names] for key, names in entry.get("dependencies", {}).items()}
        given = Given(entry["type"], entry["properties"], entry["name"], dependencies)
        made[f"{given.type} {given.name}"] = given
    return list(made.values())


def verdicts(program: Mapping[str, Any]) -> Iterator[tuple[str, Verdict]]:
    """What each rule says in both passes, with the rule's id."""
    given = resources(program)
    config = program.get("config", {})
    for rule in RULES:
        if rule.judge_resource:
            for one in given:
                yield rule.id, judge(rule, one.props, one.type, one.name, config.get(rule.id))
        if rule.judge_stack:
            yield rule.id, judge_stack(rule, *given, config=config.get(rule.id))


def place(message: str) -> str:
    return message.partition(": ")[0]


@pytest.mark.parametrize("file", PROGRAMS, ids=lambda file: file.stem)
def test_a_foreign_program_gets_the_expected_verdicts(file: Path) -> None:
    program = load(file)
    expected = {(rule, where) for rule, places in program["expected"].items() for where in places}
    found: set[Finding] = set()
    unjudged: set[str] = set()
    for rule, verdict in verdicts(program):
        found |= {(rule, place(message)) for message in verdict.violations}
        unjudged |= {rule} if verdict.unjudged else set()
    false_positives, misses = sorted(found - expected), sorted(expected - found)
    assert (false_positives, misses) == ([], []), f"{len(false_positives)} false positives, {len(misses)} misses"
    assert unjudged == set(program.get("unjudged", []))


def test_the_corpus_breaks_every_rule_somewhere_and_keeps_every_rule_somewhere() -> None:
    broken = [set(load(file)["expected"]) for file in PROGRAMS]
    assert set().union(*broken) == {rule.id for rule in RULES}
    assert len([one for one in broken if not one]) >= len(PROGRAMS) // 5
