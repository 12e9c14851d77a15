"""Programs built from pinned Go modules, each build once for all checkouts that have the same pins."""

import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tools.errors import Report, ToolchainError
from tools.go_compiler import Go, find_go
from tools.versions import GO_MODULES, module_version, required_go, requirement_version

# Unoptimised, these programs compile a quarter faster and run about 5 % slower.
_COMPILER_FLAGS = "all=-N -l"
_HEARTBEAT_SECONDS = 30
_QUOTED_LOG_LINES = 15


@dataclass(frozen=True)
class Executable:
    """A program of a build.

    `package` is its Go package. `pin` names where its version comes from: a module of the build's go.mod, or (without a
    slash) a package of requirements.txt.
    """

    name: str
    package: str
    pin: str

    @property
    def go_name(self) -> str:
        """What `go build` calls the program: the last part of the package path that is not a major version."""
        parts = [part for part in self.package.split("/") if not re.fullmatch(r"v\d+", part)]
        return parts[-1]


@dataclass(frozen=True)
class Stamp:
    """A version that the linker writes into a Go variable; `pin` as in Executable."""

    variable: str
    pin: str


def _nothing(_source: Path, _go: Go) -> None:
    """Most builds need no preparation."""


@dataclass(frozen=True)
class GoBuild:
    """One run of `go build` in the module tools/go/NAME, with its build `tags`.

    `prepare` may put further files beside its sources.
    """

    name: str
    executables: tuple[Executable, ...]
    stamps: tuple[Stamp, ...]
    expected_minutes: int
    prepare: Callable[[Path, Go], None] = _nothing
    tags: tuple[str, ...] = ()
    modules: Path = GO_MODULES

    @property
    def source(self) -> Path:
        return self.modules / self.name

    def only(self, names: set[str]) -> "GoBuild":
        """The same build without the programs that are not in `names`."""
        return replace(self, executables=tuple(each for each in self.executables if each.name in names))

    def version(self, pin: str) -> str:
        if "/" not in pin:
            return requirement_version(pin)
        version = module_version(pin, self.source / "go.mod")
        return _prometheus_release(version) if pin == _PROMETHEUS_MODULE else version

    def flags(self) -> list[str]:
        stamps = " ".join(f"-X {stamp.variable}={self.version(stamp.pin)}" for stamp in self.stamps)
        tags = ["-tags", ",".join(self.tags)] if self.tags else []
        return ["-ldflags", f"-s -w {stamps}", "-gcflags", _COMPILER_FLAGS, *tags]

    def key(self) -> str:
        """Changes with everything that decides what is built: pins, sources, flags, programs, kind of machine."""
        digest = hashlib.sha256()
        facts = [platform.system(), platform.machine(), *self.flags(), *(each.package for each in self.executables)]
        digest.update(json.dumps(facts).encode())
        for file in sorted(path for path in self.source.rglob("*") if path.is_file()):
            digest.update(f"\0{file.relative_to(self.source)}\0".encode())
            digest.update(file.read_bytes())
        return digest.hexdigest()[:16]


def _put_provider_schema(source: Path, go: Go) -> None:
    """The provider serves its module's schema, under the version of the Python package that asks for it."""
    module = "github.com/pulumi/pulumi-kubernetes/provider/v4"
    go.output("mod", "download", module, directory=source)
    module_folder = Path(go.output("list", "-m", "-f", "{{.Dir}}", module, directory=source).strip())
    files = module_folder / "cmd" / "pulumi-resource-kubernetes"
    destination = source / "kubernetes-provider"
    schema = json.loads((files / "schema.json").read_text(encoding="utf-8"))
    schema["version"] = requirement_version("pulumi-kubernetes")
    (destination / "schema.json").write_text(json.dumps(schema), encoding="utf-8")
    shutil.copyfile(files / "terraform-mapping.json", destination / "terraform-mapping.json")


_PULUMI_MODULE = "github.com/pulumi/pulumi/pkg/v3"
_KUBERNETES_MODULE = "k8s.io/kubernetes"
_ACTIONLINT_MODULE = "github.com/rhysd/actionlint"
_KEDA_MODULE = "github.com/kedacore/keda/v2"
_PROMETHEUS_MODULE = "github.com/prometheus/prometheus"
_ENVOY_GATEWAY_MODULE = "github.com/envoyproxy/gateway"


def _prometheus_release(module_version: str) -> str:
    """The release that a version of Prometheus' Go module is: v0.314.0 is 3.14.0."""
    match = re.fullmatch(r"v0\.(\d)(\d\d)\.(\d+)", module_version)
    if match is None:
        raise ToolchainError(f"{_PROMETHEUS_MODULE}: {module_version} is no version of a release")
    return f"{match[1]}.{int(match[2])}.{match[3]}"


# Expected minutes: on 2 cores, between a quiet machine's (6 and 4) and a busy one's (10 and 6).
BUILDS = (
    GoBuild(
        name="pulumi",
        executables=(
            Executable("pulumi", f"{_PULUMI_MODULE}/cmd/pulumi", _PULUMI_MODULE),
            Executable("pulumi-resource-kubernetes", "./kubernetes-provider", "pulumi-kubernetes"),
        ),
        stamps=(
            Stamp("github.com/pulumi/pulumi/sdk/v3/go/common/version.Version", _PULUMI_MODULE),
            Stamp("github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/version.Version", "pulumi-kubernetes"),
        ),
        expected_minutes=8,
        prepare=_put_provider_schema,
    ),
    GoBuild(
        name="kubernetes",
        executables=(
            Executable("etcd", "go.etcd.io/etcd/server/v3", "go.etcd.io/etcd/server/v3"),
            Executable("kube-apiserver", f"{_KUBERNETES_MODULE}/cmd/kube-apiserver", _KUBERNETES_MODULE),
            Executable(
                "kube-controller-manager", f"{_KUBERNETES_MODULE}/cmd/kube-controller-manager", _KUBERNETES_MODULE
            ),
            Executable("kube-scheduler", f"{_KUBERNETES_MODULE}/cmd/kube-scheduler", _KUBERNETES_MODULE),
            Executable("kwok", "sigs.k8s.io/kwok/cmd/kwok", "sigs.k8s.io/kwok"),
            Executable("kwokctl", "sigs.k8s.io/kwok/cmd/kwokctl", "sigs.k8s.io/kwok"),
        ),
        stamps=(Stamp("k8s.io/component-base/version.gitVersion", _KUBERNETES_MODULE),),
        expected_minutes=5,
    ),
    GoBuild(
        name="actionlint",
        executables=(Executable("actionlint", f"{_ACTIONLINT_MODULE}/cmd/actionlint", _ACTIONLINT_MODULE),),
        stamps=(Stamp("github.com/rhysd/actionlint.version", _ACTIONLINT_MODULE),),
        expected_minutes=1,
    ),
    GoBuild(
        name="prometheus",
        executables=(
            Executable("prometheus", f"{_PROMETHEUS_MODULE}/cmd/prometheus", _PROMETHEUS_MODULE),
            Executable("promtool", f"{_PROMETHEUS_MODULE}/cmd/promtool", _PROMETHEUS_MODULE),
        ),
        stamps=(Stamp("github.com/prometheus/common/version.Version", _PROMETHEUS_MODULE),),
        expected_minutes=4,
        # Tests scrape static targets: without the clients of thirty clouds the build is a fraction.
        tags=("remove_all_sd",),
    ),
    GoBuild(
        name="envoy_gateway",
        executables=(Executable("egctl", f"{_ENVOY_GATEWAY_MODULE}/cmd/egctl", _ENVOY_GATEWAY_MODULE),),
        stamps=(Stamp(f"{_ENVOY_GATEWAY_MODULE}/internal/cmd/version.envoyGatewayVersion", _ENVOY_GATEWAY_MODULE),),
        expected_minutes=5,
    ),
    GoBuild(
        name="keda",
        executables=(
            Executable("keda-operator", f"{_KEDA_MODULE}/cmd/operator", _KEDA_MODULE),
            Executable("keda-adapter", f"{_KEDA_MODULE}/cmd/adapter", _KEDA_MODULE),
        ),
        stamps=(Stamp(f"{_KEDA_MODULE}/version.Version", _KEDA_MODULE),),
        expected_minutes=9,
    ),
)


def cache_directory() -> Path:
    """The user's cache of built tools, shared by all checkouts."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "neuron-serving"


@dataclass(frozen=True)
class Built:
    """Where the programs of a build are, and whether this call built them."""

    directory: Path
    is_new: bool


def ensure_built(build: GoBuild, report: Report) -> Built:
    """The folder with the build's programs, built first if the cache does not have it.

    The folder appears by one rename when everything in it is complete, so what a killed build leaves never counts.

    Raises:
        ToolchainError: no Go, or Go fails; the message quotes the end of its output.
    """
    target = cache_directory() / f"{build.name}-{build.key()}"
    if target.is_dir():
        return Built(target / "bin", is_new=False)
    target.parent.mkdir(parents=True, exist_ok=True)
    with _locked(target.with_name(f"{target.name}.lock"), build.name, report):
        if target.is_dir():
            return Built(target / "bin", is_new=False)
        for leftover in target.parent.glob(f"{target.name}.partial-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        go = find_go(required_go(build.source / "go.mod"), report)
        # A fresh name each time: a compiler that outlived its killed parent cannot write into this build.
        partial = Path(tempfile.mkdtemp(prefix=f"{target.name}.partial-", dir=target.parent))
        try:
            _build_into(partial / "result" / "bin", build, go, partial / "source", report)
            (partial / "result").rename(target)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return Built(target / "bin", is_new=True)


@contextmanager
def _locked(file: Path, name: str, report: Report) -> Iterator[None]:
    with file.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report(f"{name}: another process builds it, waiting")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _build_into(directory: Path, build: GoBuild, go: Go, source: Path, report: Report) -> None:
    names = ", ".join(each.name for each in build.executables)
    report(f"{names}: building from pinned Go modules, about {build.expected_minutes} min")
    started = time.monotonic()
    shutil.copytree(build.source, source)
    build.prepare(source, go)
    directory.mkdir(parents=True)
    packages = [each.package for each in build.executables]
    # The trailing slash tells Go that it is a folder.
    command = [str(go.executable), "build", *build.flags(), "-o", f"{directory}/", *packages]
    log = cache_directory() / f"{build.name}-build.log"
    _run_with_heartbeat(command, source, go, log, build, report)
    for each in build.executables:
        (directory / each.go_name).rename(directory / each.name)
    report(f"{names}: done in {_clock(time.monotonic() - started)}")


def _run_with_heartbeat(command: list[str], directory: Path, go: Go, log: Path, build: GoBuild, report: Report) -> None:
    started = time.monotonic()
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(command, cwd=directory, env=go.environment(), stdout=output, stderr=output)
        try:
            while _is_running(process, _HEARTBEAT_SECONDS):
                elapsed = _clock(time.monotonic() - started)
                report(f"{build.name}: building, {elapsed} of about {build.expected_minutes} min")
        finally:
            process.kill()
            process.wait()
    if process.returncode != 0:
        last_lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-_QUOTED_LOG_LINES:]
        raise ToolchainError("\n".join([f"go build of {build.name} failed; all output is in {log}", *last_lines]))


def _is_running(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return True
    return False


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"
