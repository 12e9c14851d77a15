"""The pack on a project that is not this one, by path alone, through the real CLI and Kubernetes provider.

The provider renders manifests into a folder, so that `up` needs no cluster.
"""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policy.exceptions import KEY_PREFIX, today
from tests.engine.cli import run_pulumi
from tools import toolchain
from tools.environment import pulumi_environment
from tools.versions import ROOT

# The first run on a machine builds the tools.
pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

# A text "later:X" in a manifest is what only the update knows.
PROGRAM = f"""
import json
import re
import pulumi
import pulumi_kubernetes as kubernetes

provider = kubernetes.Provider("rendered", render_yaml_to_directory="rendered")
known = {UNKNOWN_STRING_VALUE!r} if pulumi.runtime.is_dry_run() else r"\\1"
manifests = re.sub('later:([^"]*)', known, pulumi.Config().require("manifests"))
for name, manifest in json.loads(manifests).items():
    kind = kubernetes.core.v1.Service if manifest["kind"] == "Service" else kubernetes.apps.v1.Deployment
    kind(name, metadata=manifest["metadata"], spec=manifest["spec"], opts=pulumi.ResourceOptions(provider=provider))
"""


def deployment(name: str, **container: Any) -> dict[str, Any]:
    made = {"name": name, "image": "registry.example.com/web:1.0", "resources": {"limits": {"memory": "1Gi"}}}
    return {
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [made | container]}},
        },
    }


SERVER = {
    "image": "vllm/vllm-openai:v0.11.0",
    "resources": {"limits": {"memory": "16Gi", "nvidia.com/gpu": "1"}},
    "startupProbe": {"httpGet": {"path": "/health", "port": 8000}, "failureThreshold": 60},
    "readinessProbe": {"httpGet": {"path": "/health", "port": 8000}},
}
# Breaks rules that see one resource and one that sees the stack.
CARELESS = {
    "web": deployment("web", image="nginx", resources={}),
    "vllm": deployment("vllm", **SERVER),
    "open": {
        "kind": "Service",
        "metadata": {"name": "open", "namespace": "shop"},
        "spec": {"type": "LoadBalancer", "selector": {"app": "vllm"}, "ports": [{"port": 80}]},
    },
}
BROKEN = {"memory-limits", "pinned-image", "graceful-drain", "rollout-capacity", "guarded-endpoint"}


@dataclass(frozen=True)
class Finding:
    """One entry of the policies section; `text` is all that the CLI shows below its heading."""

    level: str
    rule: str
    resource: str
    text: str


_HEADING = re.compile(r"\[(\w+)\](?: \[severity: \w+\])? +([\w-]+) +\((.+)\)")


@dataclass(frozen=True)
class Result:
    """How a run of the CLI ended and what it printed."""

    exit_code: int
    output: str

    def findings(self) -> set[Finding]:
        """What the last policies section lists."""
        section = self.output.rpartition("Policies:")[2].partition("\n\n")[0]
        found = set()
        for part in section.split("\n        - ")[1:]:
            heading, _, text = part.partition("\n")
            match = _HEADING.fullmatch(heading)
            assert match, heading
            found.add(Finding(match[1], match[2], match[3], text))
        return found

    def levels(self) -> set[tuple[str, str]]:
        """Rule and level of each finding."""
        return {(one.rule, one.level) for one in self.findings()}


class Project:
    """A project in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "foreign"
        self.folder.mkdir()
        self.environment = {
            **os.environ,
            **pulumi_environment(folder / "state", toolchain.ensure(report=lambda _: None)),
        }
        (self.folder / "Pulumi.yaml").write_text("name: foreign\nruntime: python\n")
        (self.folder / "__main__.py").write_text(PROGRAM)
        self.pulumi("stack", "init", "test")

    def pulumi(self, *arguments: str) -> Result:
        ended = run_pulumi(self.folder, self.environment, *arguments)
        return Result(ended.exit_code, ended.output)

    def set_manifests(self, manifests: Mapping[str, Any]) -> None:
        self.pulumi("config", "set", "manifests", json.dumps(manifests))

    def pack(self, config: Mapping[str, Any] | None = None) -> list[str]:
        file = self.folder / "policies.json"
        file.write_text(json.dumps(config or {}))
        return ["--policy-pack", str(ROOT / "policy"), "--policy-pack-config", str(file)]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_up_refuses_what_a_preview_refuses_word_for_word_and_makes_nothing(project: Project) -> None:
    project.set_manifests(CARELESS)
    preview = project.pulumi("preview", *project.pack())
    up = project.pulumi("up", "--yes", "--skip-preview=false", *project.pack())
    assert preview.exit_code != 0, preview.output
    assert up.exit_code != 0, up.output
    assert preview.levels() == {(rule, "mandatory") for rule in BROKEN}
    assert up.findings() == preview.findings()
    assert not (project.folder / "rendered").exists()


def test_levels_are_the_stacks_and_what_is_deployed_is_analysed_without_a_program(project: Project) -> None:
    project.set_manifests(CARELESS)
    warned = project.pulumi("up", "--yes", *project.pack({"all": "advisory"}))
    assert warned.exit_code == 0, warned.output
    assert warned.levels() == {(rule, "advisory") for rule in BROKEN}

    mixed = {
        "all": "advisory",
        "memory-limits": "mandatory",
        "pinned-image": "disabled",
        "graceful-drain": {"enforcementLevel": "advisory", "longestRequestSeconds": 600},
    }
    chosen = project.pulumi("preview", *project.pack(mixed))
    assert chosen.exit_code != 0, chosen.output
    assert chosen.levels() == {
        (rule, "mandatory" if rule == "memory-limits" else "advisory") for rule in BROKEN - {"pinned-image"}
    }
    assert "a request of 600 s" in chosen.output

    (project.folder / "__main__.py").unlink()
    analysed = project.pulumi("policy", "analyze", *project.pack())
    assert analysed.exit_code != 0, analysed.output
    assert {replace(one, level="advisory") for one in analysed.findings()} == warned.findings()


def test_an_exception_lets_up_pass_and_is_shown_with_reason_and_end(project: Project) -> None:
    until = f"{today() + timedelta(days=30)}"
    excepted = deployment("web", resources={})
    excepted["metadata"]["annotations"] = {f"{KEY_PREFIX}memory-limits": f"{until} being measured"}
    project.set_manifests({"web": excepted})
    passed = project.pulumi("up", "--yes", *project.pack())
    assert passed.exit_code == 0, passed.output
    [finding] = passed.findings()
    assert (finding.level, finding.rule) == ("advisory", "policy-exceptions")
    assert f"memory-limits is excepted until {until}" in finding.text
    assert "Why: being measured" in finding.text


def test_what_a_preview_cannot_know_is_a_warning_and_the_update_refuses_it(project: Project) -> None:
    drained = {"lifecycle": {"preStop": {"sleep": {"seconds": 5}}}}
    server = deployment("vllm", **SERVER, **drained)
    server["spec"]["strategy"] = {"type": "Recreate"}
    server["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 60
    service = {**CARELESS["open"], "spec": {**CARELESS["open"]["spec"], "type": "later:LoadBalancer"}}
    project.set_manifests({"web": deployment("web", image="later:nginx"), "vllm": server, "open": service})

    preview = project.pulumi("preview", *project.pack())
    assert preview.exit_code == 0, preview.output
    of_an_image = {"pinned-image", "image-line-matches-accelerator", "supported-image-line"}
    assert preview.levels() == {(rule, "advisory") for rule in {*of_an_image, "guarded-endpoint"}}
    assert all("not yet known, so not judged: " in finding.text for finding in preview.findings())

    # Refused by the rule that sees one resource, before that is made; without it, by the one that sees the whole stack.
    stopped = project.pulumi("up", "--yes", "--skip-preview", *project.pack())
    assert stopped.exit_code != 0, stopped.output
    assert ("pinned-image", "mandatory") in stopped.levels()
    assert not list(project.folder.glob("rendered/**/*deployment-shop-web.yaml"))
    finished = project.pulumi("up", "--yes", "--skip-preview", *project.pack({"pinned-image": "advisory"}))
    assert finished.exit_code != 0, finished.output
    assert finished.levels() == {("pinned-image", "advisory"), ("guarded-endpoint", "mandatory")}
