"""Writes docs/policies, one page a rule, and the table in policy/README.md, from what the rules say of themselves.

`--check` writes nothing and fails where something is stale.
"""

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from policy.exceptions import CONFIG_KEY, DEFAULT_LONGEST_DAYS, KEY_PREFIX, LONGEST_KEY, WHOLE_STACK, Ledger
from policy.policies import exceptions_report
from policy.rule import Rule
from policy.rules import RULES

_ROOT = Path(__file__).resolve().parent.parent
PAGES = _ROOT / "docs" / "policies"
README = _ROOT / "policy" / "README.md"
_COMMAND = "python -m tools.policy_docs"
_GENERATED = f"<!-- Written by `{_COMMAND}` from policy/rules: change the rule, not this page. -->"
_INDEX = "README.md"
_EXCEPTIONS = f"""
## Exceptions

By annotation, tag or configuration: [how to state one]({_INDEX}#exceptions).
"""
_REPORT = exceptions_report(Ledger())
DOCUMENTED = (*RULES, _REPORT)


def pages() -> dict[str, str]:
    """The text of every page, by file name."""
    return {_INDEX: _index(), **{f"{rule.id}.md": _page(rule) for rule in DOCUMENTED}}


def stale(directory: Path = PAGES) -> list[str]:
    """Names of the files that are missing, differ, or belong to no rule."""
    wanted = pages()
    there = {path.name: path.read_text() for path in directory.glob("*.md")}
    return sorted(name for name in wanted.keys() | there.keys() if wanted.get(name) != there.get(name))


def write(directory: Path = PAGES) -> list[str]:
    """Write what is stale and remove what belongs to no rule; the names of these files."""
    changed = stale(directory)
    directory.mkdir(parents=True, exist_ok=True)
    wanted = pages()
    for name in changed:
        if name in wanted:
            (directory / name).write_text(wanted[name])
        else:
            (directory / name).unlink()
    return changed


def with_table(readme: str) -> str:
    """A readme with the table of rules in its place, between two marks."""
    head, mark, rest = readme.partition(f"<!-- rules: written by `{_COMMAND}` -->\n")
    _, end, tail = rest.partition("<!-- end of rules -->")
    return f"{head}{mark}{_table('../docs/policies/')}\n{end}{tail}"


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog=_COMMAND, description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a page is stale")
    check = parser.parse_args().check
    readme = README.read_text()
    found = [f"docs/policies/{name}" for name in (stale() if check else write())]
    found += ["policy/README.md"] if with_table(readme) != readme else []
    for name in found:
        print(f"{name} is stale; run `{_COMMAND}`" if check else name)
    if not check:
        README.write_text(with_table(readme))
    return 1 if check and found else 0


def _table(folder: str = "") -> str:
    rows = "\n".join(
        f"| [{rule.id}]({folder}{rule.id}.md) | {rule.title} | {rule.level.value} | {rule.severity.value} |"
        for rule in DOCUMENTED
    )
    return f"""| Rule | What it asks for | Level | Severity |
|---|---|---|---|
{rows}"""


def _index() -> str:
    return f"""{_GENERATED}

# The rules of the policy pack

{_table()}

A mandatory finding stops `pulumi up`; an advisory one is a warning. To change a level, or to configure a rule, give the
pack a file: `pulumi up --policy-pack policy --policy-pack-config policies.json`. To begin with warnings alone:

```json
{{"all": "advisory"}}
```

## Exceptions

A Kubernetes object that need not keep a rule for some time says so by an annotation, an AWS resource by a tag. The
value is the last day on which the exception holds (UTC), and the reason:

```yaml
metadata:
  annotations:
    {KEY_PREFIX}memory-limits: "2027-03-31 the exporter's peak is being measured"
```

What can carry neither, and a finding on the stack as a whole (`{WHOLE_STACK}`, as of vcpu-quota), is listed in the
configuration of the rule. `resource` is the URN, the name in the program, or kind, namespace and name such as
`Deployment serving/vllm`:

```json
{{
  "vcpu-quota": {{
    "{CONFIG_KEY}": [{{"resource": "{WHOLE_STACK}", "until": "2027-03-31", "reason": "an increase is requested"}}]
  }}
}}
```

What an exception lets pass is reported by [{_REPORT.id}]({_REPORT.id}.md), with reason and end. An exception that has
ended, has no reason, no date or names no rule of the pack does not count: the violation stands and says so. Nor does
one that ends later than {DEFAULT_LONGEST_DAYS} days from today; the message names the latest day that is allowed.
`{LONGEST_KEY}` in the configuration of a rule makes that term shorter or longer.

An annotation counts for its own object only: one on a List or on a pod template does nothing. In the value of a tag AWS
allows letters, digits, spaces and `+ - = . _ : / @`.

## Unknown values

A value that is not known during a preview neither passes nor fails: the rule warns which value it could not see and
judges everything else. What it could not see it judges during the update.
"""


def _page(rule: Rule) -> str:
    steps = "\n".join(f"{number}. {step}" for number, step in enumerate(rule.remediation, 1))
    return f"""{_GENERATED}

# {rule.id}

**{rule.title}.** Level: {rule.level.value}. Severity: {rule.severity.value}. Judges {_scope(rule)}.

## Why

{rule.why[:1].upper()}{rule.why[1:]}

## What to do

{steps}

## Configuration

{_configuration(rule)}
{"" if rule is _REPORT else _EXCEPTIONS}"""


def _scope(rule: Rule) -> str:
    if rule.judge_stack is None:
        return "each resource, before it is created or changed"
    if rule.judge_resource is None:
        return "the stack as a whole, after its resources are known"
    return "each resource before it is created or changed, and the stack as a whole for what only other resources tell"


def _configuration(rule: Rule) -> str:
    level = {"enforcementLevel": rule.level.value}
    properties: Mapping[str, object] = rule.config.properties if rule.config else {}
    if not properties:
        return f"The level only:\n\n{_json({rule.id: level})}"
    return f"By JSON schema:\n\n{_json(properties)}\n\nThe level as for every rule:\n\n{_json({rule.id: level})}"


def _json(value: object) -> str:
    return f"```json\n{json.dumps(value, indent=2)}\n```"


if __name__ == "__main__":
    sys.exit(main())
