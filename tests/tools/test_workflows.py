"""The workflows: well-formed, pinned, with no more rights than they need; what Renovate keeps up to date is found."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.charts import CHARTS
from tools import toolchain
from tools.versions import GO_MODULES, ROOT, module_version

GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yaml"))
# Rights that a job may have beside reading the sources, and why it needs them.
RIGHTS = {
    ("preview", "preview"): {"id-token"},
    ("preview", "comment"): {"pull-requests"},
    ("deploy", "up"): {"id-token"},
    ("drift", "drift"): {"id-token", "issues"},
    ("test", "test"): set[str](),
    ("test-long", "test-long"): set[str](),
}


def test_actionlint_finds_nothing() -> None:
    actionlint = toolchain.ensure(["actionlint"], report=lambda _: None).path("actionlint")
    checked = subprocess.run(
        [actionlint, "-shellcheck=", "-pyflakes="], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_every_action_is_pinned_by_commit_with_its_version_beside_it(file: Path) -> None:
    used = re.findall(r"^\s*-? *uses: *(.+)$", file.read_text(), re.MULTILINE)
    assert used
    for action in used:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_a_job_has_the_rights_that_are_listed_here_and_no_others(file: Path) -> None:
    workflow = yaml.safe_load(file.read_text())
    for name, job in workflow["jobs"].items():
        rights: dict[str, Any] = job.get("permissions", workflow["permissions"])
        assert {right for right, level in rights.items() if level == "write"} == RIGHTS[file.stem, name]


def test_the_job_that_runs_a_pull_requests_code_cannot_write_and_the_one_that_writes_runs_none() -> None:
    jobs = yaml.safe_load((GITHUB / "workflows" / "preview.yaml").read_text())["jobs"]
    assert jobs["preview"]["permissions"] == {"contents": "read", "id-token": "write"}
    assert not any("checkout" in step.get("uses", "") for step in jobs["comment"]["steps"])


def test_the_workflows_run_the_pulumi_that_the_tests_run() -> None:
    pinned = module_version("github.com/pulumi/pulumi/pkg/v3", GO_MODULES / "pulumi" / "go.mod").removeprefix("v")
    versions = [version for file in WORKFLOWS for version in re.findall(r"pulumi-version: (\S+)", file.read_text())]
    assert set(versions) == {pinned}


def managed(description: str) -> list[dict[str, str]]:
    """What a custom manager of the Renovate configuration finds, by its named groups."""
    managers = json.loads((GITHUB / "renovate.json").read_text())["customManagers"]
    (manager,) = (one for one in managers if description in one["description"])
    pattern = re.compile(manager["managerFilePatterns"][0].strip("/"))
    (expression,) = manager["matchStrings"]
    # Python names groups with a P.
    expression = re.sub(r"\(\?<(?=\w+>)", "(?P<", expression)
    files = [file for file in ROOT.glob("*/*") if pattern.search(str(file.relative_to(ROOT)))]
    return [match.groupdict() for file in files for match in re.finditer(expression, file.read_text())]


def test_renovate_finds_every_chart_with_its_version() -> None:
    found = managed("OCI registry") + managed("chart repository")
    assert sorted((one["depName"], one["currentValue"]) for one in found) == sorted(
        (chart.name, chart.version) for chart in CHARTS.values()
    )


def test_renovate_finds_every_ami_release() -> None:
    pinned = [line for file in (ROOT / "stacks").glob("*.yaml") for line in file.read_text().splitlines()]
    expected = [line.split('"')[1] for line in pinned if line.strip().startswith("amiRelease:")]
    assert expected
    assert sorted(one["currentValue"] for one in managed("AMI releases")) == sorted(expected)
