"""Which tools are taken from PATH, with stand-ins for the programs and for Go."""

import sys
from pathlib import Path

import pytest

from tests.tools.fake_programs import write_go, write_program
from tools import go_build, toolchain
from tools.errors import ToolchainError
from tools.go_build import BUILDS
from tools.toolchain import LANGUAGE_HOST, TOOLS, ensure, table
from tools.versions import Version, parse_version

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH, with a stand-in for Go; the cache is empty."""
    folder = tmp_path / "bin"
    write_go(folder, tmp_path / "calls")
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


@pytest.mark.parametrize(
    ("output", "version"),
    [
        ("v3.229.0\n", (3, 229, 0)),
        ("Kubernetes v1.36.3\n", (1, 36, 3)),
        ("etcd Version: 3.6.8\nGit SHA: Not provided\nGo Version: go1.26.8\n", (3, 6, 8)),
        ("kwok version v0.8.0 go1.26.8 (linux/amd64)\n", (0, 8, 0)),
        ("go version go1.27 linux/amd64\n", (1, 27, 0)),
        ("3.230.0-alpha.1750000000\n", (3, 230, 0)),
        ("command not found\n", None),
        ("", None),
    ],
)
def test_a_version_is_read_from_what_a_program_prints(output: str, version: Version | None) -> None:
    assert parse_version(output) == version


def test_a_sufficient_program_on_path_is_used_and_only_the_rest_is_built(on_path: Path, tmp_path: Path) -> None:
    etcd = write_program(on_path, "etcd", "print('etcd Version: 3.6.9')\n")
    found = ensure(["etcd", "kwok"])
    assert found.path("etcd") == etcd
    assert [(tool.name, tool.version, tool.origin) for tool in found.tools] == [
        ("etcd", "3.6.9", "PATH"),
        ("kwok", "0.8.0", "built"),
    ]
    assert found.bin_directories == (found.path("kwok").parent,)
    assert "etcd" not in (tmp_path / "calls").read_text().rsplit("-o", 1)[1]


@pytest.mark.parametrize(
    ("name", "output", "reason"),
    [
        ("kube-apiserver", "Kubernetes v1.35.9", "is 1.35.9, needed is 1.36.0 or newer and below 1.37.0: not used"),
        ("kube-scheduler", "Kubernetes v1.37.0", "is 1.37.0, needed is 1.36.0 or newer and below 1.37.0: not used"),
        ("kwok", "no idea", "does not tell its version, not used"),
    ],
)
def test_an_unsuitable_program_on_path_is_reported_and_built(
    on_path: Path, name: str, output: str, reason: str
) -> None:
    program = write_program(on_path, name, f"print({output!r})\n")
    lines: list[str] = []
    found = ensure([name], lines.append)
    assert lines[0] == f"{name}: {program} {reason}"
    assert found.path(name) != program


def test_all_wanted_on_path_needs_no_go(on_path: Path) -> None:
    (on_path / "go").unlink()
    for tool in TOOLS:
        if tool.build == "kubernetes":
            version = ".".join(map(str, tool.minimum))
            write_program(on_path, tool.name, f"print('{version}')\n")
    found = ensure([tool.name for tool in TOOLS if tool.build == "kubernetes"])
    assert {tool.origin for tool in found.tools} == {"PATH"}
    assert found.bin_directories == ()


def test_what_an_earlier_environment_put_on_path_still_counts_as_cache(
    on_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = ensure(["etcd"])
    write_program(built.path("etcd").parent, "etcd", "print('etcd Version: 3.6.8')\n")
    monkeypatch.setenv("PATH", f"{built.path('etcd').parent}:{LANGUAGE_HOST.parent}:{on_path}")
    found = ensure(["etcd", "pulumi-language-python"])
    assert [tool.origin for tool in found.tools] == ["checkout", "cache"]
    assert found.path("etcd") == built.path("etcd")


def test_the_official_language_host_is_found_beside_the_linked_cli(on_path: Path, tmp_path: Path) -> None:
    distribution = tmp_path / "distribution"
    write_program(distribution, "pulumi", "print('v3.240.0')\n")
    host = write_program(distribution, "pulumi-language-python", "print('3.240.0')\n")
    (on_path / "pulumi").symlink_to(distribution / "pulumi")
    found = ensure(["pulumi-language-python"])
    assert found.path("pulumi-language-python") == host
    assert found.tools[0].origin == "PATH"


def test_without_an_official_language_host_the_checkouts_own_is_used(on_path: Path) -> None:
    assert on_path.is_dir()
    found = ensure(["pulumi-language-python"])
    assert found.path("pulumi-language-python") == LANGUAGE_HOST
    assert found.tools[0].origin == "checkout"


def test_a_tool_for_tests_comes_only_when_it_is_asked_for(on_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert on_path.is_dir()
    monkeypatch.setattr(toolchain, "TOOLS", [tool for tool in TOOLS if tool.name in ("etcd", "egctl")])
    assert [tool.name for tool in ensure().tools] == ["etcd"]
    assert [tool.name for tool in ensure(["egctl"]).tools] == ["egctl"]


def test_an_unknown_name_lists_the_tools(on_path: Path) -> None:
    assert on_path.is_dir()
    with pytest.raises(ToolchainError, match="unknown tool helm; the tools are pulumi, "):
        ensure(["helm"])


def test_every_tool_comes_from_exactly_one_place() -> None:
    built = [each.name for build in BUILDS for each in build.executables]
    assert sorted(built) == sorted(tool.name for tool in TOOLS if tool.build)
    assert all((tool.build is None) != (tool.in_checkout is None) for tool in TOOLS)


def test_what_is_built_would_be_accepted_on_path() -> None:
    versions = {each.name: build.version(each.pin) for build in BUILDS for each in build.executables}
    for tool in TOOLS:
        if tool.build:
            version = parse_version(versions[tool.name])
            assert version is not None
            assert tool.accepts(version), tool.name


def test_the_table_names_tool_version_origin_and_path(on_path: Path) -> None:
    write_program(on_path, "etcd", "print('etcd Version: 3.6.9')\n")
    assert table(ensure(["etcd"])) == f"etcd  3.6.9  PATH  {on_path}/etcd"


def test_a_failure_is_one_line_without_traceback(
    on_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (on_path / "go").unlink()
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    assert toolchain.main() == 1
    assert capsys.readouterr().err.startswith("error: Go 1.26.0 or newer is needed")


def test_the_cache_follows_the_xdg_convention(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/somebody")
    assert go_build.cache_directory() == Path("/home/somebody/.cache/neuron-serving")
