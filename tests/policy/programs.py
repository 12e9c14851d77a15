"""The corpus of foreign programs: resources as the engine shows them, and what the pack is to say of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from policy.rule import Rule
from tests.policy.fixtures import Path as Keys
from tests.policy.fixtures import with_value
from tests.policy.judging import Given, Verdict, judge, judge_stack

# A rule's id and the place that its message names.
Finding = tuple[str, str]


@dataclass(frozen=True)
class Program:
    """A foreign program. `unjudged` are the rules that say of it what they could not judge."""

    name: str
    resources: tuple[Given, ...]
    config: Mapping[str, dict[str, Any]]
    expected: frozenset[Finding]
    unjudged: frozenset[str]

    def verdicts(self, rule: Rule) -> list[Verdict]:
        """What a rule says of each resource and of the stack, in the passes that it takes part in."""
        config = self.config.get(rule.id)
        found = [judge(rule, one.props, one.type, one.name, config) for one in self.resources if rule.judge_resource]
        return [*found, judge_stack(rule, *self.resources, config=config)] if rule.judge_stack else found

    def findings(self, rule: Rule) -> set[Finding]:
        """What a rule finds in either pass."""
        return {(rule.id, place(message)) for verdict in self.verdicts(rule) for message in verdict.violations}

    def with_value(self, resource: Given, keys: Keys, value: Any) -> "Program":
        """The same program with one value of one resource changed."""
        changed = replace(resource, props=with_value(resource.props, keys, value))
        return replace(self, resources=tuple(changed if one is resource else one for one in self.resources))


def place(message: str) -> str:
    """Where the finding is."""
    return message.partition(": ")[0]


def paths(value: Any, keys: Keys = ()) -> Iterator[tuple[Keys, Any]]:
    """Every value below one, with the way to it."""
    entries: Any = value.items() if isinstance(value, Mapping) else ()
    if isinstance(value, Sequence) and not isinstance(value, str):
        entries = enumerate(value)
    for key, below in entries:
        yield (*keys, key), below
        yield from paths(below, (*keys, key))


def _load(file: Path) -> Program:
    program = yaml.safe_load(file.read_text())
    expected = {(rule, where) for rule, places in program["expected"].items() for where in places}
    return Program(
        file.stem,
        tuple(_resources(program["resources"])),
        program.get("config", {}),
        frozenset(expected),
        frozenset(program.get("unjudged", ())),
    )


def _resources(entries: Sequence[Any]) -> Iterator[Given]:
    """The resources; the type token of a manifest is the one that Pulumi gives it."""
    named: dict[str, Given] = {}
    for entry in entries:
        manifest = entry.get("manifest")
        if manifest:
            version = "core/v1" if manifest["apiVersion"] == "v1" else manifest["apiVersion"]
            yield Given(f"kubernetes:{version}:{manifest['kind']}", manifest, manifest["metadata"]["name"])
            continue
        dependencies = {key: [named[one] for one in names] for key, names in entry.get("dependencies", {}).items()}
        named[entry["name"]] = Given(entry["type"], entry["properties"], entry["name"], dependencies)
        yield named[entry["name"]]


PROGRAMS = tuple(_load(file) for file in sorted((Path(__file__).parent / "corpus").glob("*.yaml")))
