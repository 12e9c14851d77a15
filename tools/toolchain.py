"""The programs that this project runs: from PATH in a sufficient version, else built from pinned Go modules.

`python -m tools.toolchain` makes sure of all of them and prints where each one is from.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path

from tools.errors import Report, ToolchainError, report_line
from tools.go_build import BUILDS, GoBuild, cache_directory, ensure_built
from tools.plugin_version import plugin_version
from tools.versions import ROOT, PinError, Version, format_version, parse_version

LANGUAGE_HOST = ROOT / "tools" / "language_host" / "bin" / "pulumi-language-python"
_PROBE_SECONDS = 30


def printed_version(executable: Path, argument: str = "--version") -> str:
    """What a program says when it is asked for its version."""
    result = subprocess.run([executable, argument], capture_output=True, text=True, timeout=_PROBE_SECONDS, check=False)
    return result.stdout


def _egctl_version(executable: Path) -> str:
    """What egctl says without a cluster."""
    command = [str(executable), "version", "--remote=false"]
    return subprocess.run(command, capture_output=True, text=True, timeout=_PROBE_SECONDS, check=False).stdout


@dataclass(frozen=True)
class Tool:
    """A program by the name of its executable, and which versions of it on PATH will do: minimum <= version < below.

    `probe` returns text that has the version in it. `build` names the Go build that gives the program; without one the
    checkout itself has it, at `in_checkout`. What is `for_tests` no stack needs: it comes when it is asked for.
    """

    name: str
    minimum: Version
    below: Version | None = None
    probe: Callable[[Path], str] = printed_version
    build: str | None = None
    in_checkout: Path | None = None
    for_tests: bool = False

    def accepts(self, version: Version) -> bool:
        return version >= self.minimum and (self.below is None or version < self.below)

    @property
    def accepted_range(self) -> str:
        upper = "" if self.below is None else f" and below {format_version(self.below)}"
        return f"{format_version(self.minimum)} or newer{upper}"


# Policy packs start through the language host since 3.221; 3.223 has the fixes that follow it.
_PULUMI = (3, 223, 0)
# The scheduler and the controller manager must not be newer than the API server, so all three are of one minor.
_KUBERNETES = (1, 36, 0)
_NEXT_KUBERNETES = (1, 37, 0)

TOOLS = (
    Tool("pulumi", _PULUMI, probe=partial(printed_version, argument="version"), build="pulumi"),
    Tool("pulumi-resource-kubernetes", (4, 25, 0), probe=plugin_version, build="pulumi"),
    Tool("pulumi-language-python", _PULUMI, in_checkout=LANGUAGE_HOST),
    Tool("etcd", (3, 6, 0), build="kubernetes"),
    Tool("kube-apiserver", _KUBERNETES, _NEXT_KUBERNETES, build="kubernetes"),
    Tool("kube-controller-manager", _KUBERNETES, _NEXT_KUBERNETES, build="kubernetes"),
    Tool("kube-scheduler", _KUBERNETES, _NEXT_KUBERNETES, build="kubernetes"),
    # Stages with the fields that the simulated nodes use: 0.8.
    Tool("kwok", (0, 8, 0), build="kubernetes"),
    Tool("kwokctl", (0, 8, 0), build="kubernetes"),
    # Prometheus 3 changed which samples a range holds, and with it what rules evaluate to.
    Tool("prometheus", (3, 0, 0), build="prometheus", for_tests=True),
    Tool("promtool", (3, 0, 0), build="prometheus", for_tests=True),
    # Of the chart's minor version: what it makes of our resources is what the cluster's Envoy gets.
    Tool("egctl", (1, 9, 0), (1, 10, 0), probe=_egctl_version, build="envoy_gateway", for_tests=True),
    Tool("actionlint", (1, 7, 0), build="actionlint", for_tests=True),
    # The official programs do not tell their versions, and have other names: these are always built.
    Tool("keda-operator", (2, 20, 2), build="keda", for_tests=True),
    Tool("keda-adapter", (2, 20, 2), build="keda", for_tests=True),
)


@dataclass(frozen=True)
class FoundTool:
    """Where a tool is. `origin` is PATH, built (by this call), cache or checkout."""

    name: str
    path: Path
    version: str
    origin: str


@dataclass(frozen=True)
class Toolchain:
    """The tools that were asked for."""

    tools: tuple[FoundTool, ...]

    def path(self, name: str) -> Path:
        """The executable of a tool; KeyError for one that was not asked for."""
        for tool in self.tools:
            if tool.name == name:
                return tool.path
        raise KeyError(name)

    @property
    def bin_directories(self) -> tuple[Path, ...]:
        """The folders that PATH has to have in front: those of the tools that are not on it."""
        folders = [tool.path.parent for tool in self.tools if tool.origin != "PATH"]
        return tuple(dict.fromkeys(folders))


def ensure(names: Collection[str] | None = None, report: Report = report_line) -> Toolchain:
    """The tools called `names` (all that a stack needs by default), with what is missing built.

    Raises:
        ToolchainError: an unknown name, or a tool that cannot be had.
    """
    wanted = _wanted(names)
    builds = {tool.build for tool in wanted}
    # A build makes all its programs that PATH lacks, whoever asks first: one cache entry, not one for each subset.
    siblings = [tool for tool in TOOLS if tool in wanted or (tool.build and tool.build in builds)]
    found = {tool.name: on_path for tool in siblings if (on_path := _find_on_path(tool, report))}
    missing = {tool.name for tool in siblings} - found.keys()
    for build in BUILDS:
        if build.name in builds:
            found.update(_from_build(build.only(missing), report))
    for tool in wanted:
        if tool.in_checkout and tool.name not in found:
            found[tool.name] = _from_checkout(tool, tool.in_checkout)
    return Toolchain(tuple(found[tool.name] for tool in wanted))


def _wanted(names: Collection[str] | None) -> tuple[Tool, ...]:
    known = [tool.name for tool in TOOLS]
    unknown = sorted(set(names or ()) - set(known))
    if unknown:
        raise ToolchainError(f"unknown tool {', '.join(unknown)}; the tools are {', '.join(known)}")
    return tuple(tool for tool in TOOLS if (not tool.for_tests if names is None else tool.name in names))


def _find_on_path(tool: Tool, report: Report) -> FoundTool | None:
    executable = _search(tool.name)
    if executable is None:
        return None
    try:
        version = parse_version(tool.probe(executable))
    except (OSError, subprocess.SubprocessError):
        version = None
    if version is None:
        report(f"{tool.name}: {executable} does not tell its version, not used")
        return None
    if not tool.accepts(version):
        report(f"{tool.name}: {executable} is {format_version(version)}, needed is {tool.accepted_range}: not used")
        return None
    return FoundTool(tool.name, executable, format_version(version), "PATH")


def _search(name: str) -> Path | None:
    folders = [folder for folder in os.get_exec_path() if not _is_ours(Path(folder))]
    pulumi = shutil.which("pulumi", path=os.pathsep.join(folders))
    if pulumi:
        # The engine also looks for its bundled plugins beside its own executable, links followed.
        folders.append(str(Path(pulumi).resolve().parent))
    executable = shutil.which(name, path=os.pathsep.join(folders))
    return Path(executable) if executable else None


def _is_ours(folder: Path) -> bool:
    """Whether an earlier `make env` put this folder on PATH: its tools are found by their pins instead."""
    resolved = folder.resolve()
    return resolved == LANGUAGE_HOST.parent or resolved.is_relative_to(cache_directory().resolve())


def _from_build(build: GoBuild, report: Report) -> dict[str, FoundTool]:
    if not build.executables:
        return {}
    built = ensure_built(build, report)
    origin = "built" if built.is_new else "cache"
    return {
        each.name: FoundTool(each.name, built.directory / each.name, build.version(each.pin).removeprefix("v"), origin)
        for each in build.executables
    }


def _from_checkout(tool: Tool, executable: Path) -> FoundTool:
    if not os.access(executable, os.X_OK):
        raise ToolchainError(f"{executable} is not executable; run `chmod +x {executable}`")
    # Pulumi is told to start it in the virtual environment that this runs in.
    return FoundTool(tool.name, executable, metadata.version("pulumi"), "checkout")


def table(toolchain: Toolchain) -> str:
    """One line a tool: name, version, where it is from, path."""
    rows = [(tool.name, tool.version, tool.origin, str(tool.path)) for tool in toolchain.tools]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]) for row in rows
    )


def main() -> int:
    try:
        print(table(ensure([tool.name for tool in TOOLS])))
    except (ToolchainError, PinError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; what was half-built does not count", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
