"""The page of alerts is the one that the table gives."""

from pathlib import Path

from components.monitoring.alerts import ALERTS
from tools.alert_docs import is_stale, page


def test_the_page_is_current() -> None:
    assert not is_stale(), "run python -m tools.alert_docs"


def test_a_page_that_differs_or_is_missing_is_stale(tmp_path: Path) -> None:
    file = tmp_path / "alerts.md"
    assert is_stale(file)
    file.write_text(page() + "more")
    assert is_stale(file)


def test_every_alert_has_the_section_that_its_link_leads_to() -> None:
    headings = [line.removeprefix("## ").lower() for line in page().splitlines() if line.startswith("## ")]
    assert headings == [alert.anchor for alert in ALERTS]
