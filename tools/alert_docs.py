"""Writes docs/alerts.md, one section an alert, from the table of alerts; `--check` fails where it is stale."""

import argparse
import sys
from pathlib import Path

from components.monitoring.alerts import ALERTS, Alert

PAGE = Path(__file__).resolve().parent.parent / "docs" / "alerts.md"
_COMMAND = "python -m tools.alert_docs"


def page() -> str:
    """The text of the page."""
    rows = "\n".join(f"| [{alert.name}](#{alert.anchor}) | {alert.severity} | {_time(alert)} |" for alert in ALERTS)
    sections = "\n".join(_section(alert) for alert in ALERTS)
    return f"""<!-- Written by `{_COMMAND}` from components/monitoring/alerts.py: change the table, not this page. -->

# The alerts

What each alert means, why its threshold is what it is, and what to do first. "(src)" is
[measurements.md](measurements.md). Each alert's annotation `runbook_url` leads to its section, once
`observability.runbookUrl` says where this page is read.

| Alert | Severity | Must hold for |
|---|---|---|
{rows}

{sections}"""


def is_stale(file: Path = PAGE) -> bool:
    """Whether the file is missing or differs."""
    return not file.is_file() or file.read_text(encoding="utf-8") != page()


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog=_COMMAND, description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the page is stale")
    if parser.parse_args().check:
        if is_stale():
            print(f"docs/alerts.md is stale; run `{_COMMAND}`")
            return 1
        return 0
    PAGE.write_text(page(), encoding="utf-8")
    return 0


def _section(alert: Alert) -> str:
    steps = "\n".join(f"{number}. {step}" for number, step in enumerate(alert.first_steps, 1))
    return f"""## {alert.name}

{alert.meaning} Severity: {alert.severity}. Must hold for: {_time(alert)}.

**Why this threshold.** {alert.evidence}

**First steps**

{steps}

```
{alert.expression}
```
"""


def _time(alert: Alert) -> str:
    return f"{alert.for_seconds} s" if alert.for_seconds else "no time"


if __name__ == "__main__":
    sys.exit(main())
