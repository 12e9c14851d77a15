"""The pages of the rules are those that the rules themselves give."""

from pathlib import Path

import pytest

from tools import policy_docs


def test_the_pages_are_current() -> None:
    assert policy_docs.stale() == [], "run python -m tools.policy_docs"


def test_every_url_of_a_rule_leads_to_its_page() -> None:
    root = policy_docs.PAGES.parent.parent
    for rule in policy_docs.DOCUMENTED:
        page = (root / rule.url).read_text()
        assert page.splitlines()[2] == f"# {rule.id}"
        assert all(step in page for step in rule.remediation)


def test_the_index_names_each_rule_with_its_level() -> None:
    rows = [line.split("|") for line in policy_docs.pages()["README.md"].splitlines() if line.startswith("| [")]
    assert [row[3].strip() for row in rows] == [rule.level.value for rule in policy_docs.DOCUMENTED]


def test_a_page_that_differs_is_missing_or_belongs_to_no_rule_is_stale(tmp_path: Path) -> None:
    assert len(policy_docs.stale(tmp_path)) == len(policy_docs.DOCUMENTED) + 1
    policy_docs.write(tmp_path)
    assert policy_docs.stale(tmp_path) == []
    (tmp_path / "probes.md").write_text("other")
    (tmp_path / "gone.md").write_text("of an old rule")
    (tmp_path / "README.md").unlink()
    assert policy_docs.stale(tmp_path) == ["README.md", "gone.md", "probes.md"]
    assert policy_docs.write(tmp_path) == ["README.md", "gone.md", "probes.md"]
    assert policy_docs.stale(tmp_path) == []


def test_the_command_says_what_is_stale(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["policy_docs", "--check"])
    assert policy_docs.main() == 0
    monkeypatch.setattr(policy_docs, "stale", lambda: ["probes.md"])
    assert policy_docs.main() == 1
    assert "docs/policies/probes.md is stale" in capsys.readouterr().out


def test_the_readme_of_the_pack_has_the_table_of_the_rules() -> None:
    readme = policy_docs.README.read_text()
    assert policy_docs.with_table(readme) == readme, "run python -m tools.policy_docs"
    rows = [line for line in readme.splitlines() if line.startswith("| [")]
    assert len(rows) == len(policy_docs.DOCUMENTED)
    for row, rule in zip(rows, policy_docs.DOCUMENTED, strict=True):
        assert (policy_docs.README.parent / row.partition("](")[2].partition(")")[0]).resolve().is_file()
        assert rule.level.value in row
    assert policy_docs.with_table(readme.replace(rows[0], "")) == readme
