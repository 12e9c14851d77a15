"""The CustomResourceDefinitions that the stacks need, from the files inside the upstream projects' own Go modules."""

import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.control_plane.api import Api
from tools.control_plane.nodes import Object
from tools.errors import Report
from tools.go_build import cache_directory
from tools.go_compiler import find_go
from tools.versions import GO_MODULES, module_version, required_go

_PINS = GO_MODULES / "crds"
_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@dataclass(frozen=True)
class CrdSource:
    """Files of a Go module that tools/go/crds/go.mod pins; `pattern` is a glob inside it."""

    name: str
    module: str
    pattern: str

    @property
    def version(self) -> str:
        return module_version(self.module, _PINS / "go.mod")


SOURCES = (
    CrdSource(
        "prometheus-operator",
        "github.com/prometheus-operator/prometheus-operator",
        "example/prometheus-operator-crd/*.yaml",
    ),
)


def crd_files(source: CrdSource, report: Report) -> list[Path]:
    """The files of `source`, in the user's cache of tools, where a first call puts them.

    Raises:
        ToolchainError: there is no Go, or the module cannot be had or is not the one that go.sum names.
    """
    directory = cache_directory() / f"crds-{source.name}-{source.version}"
    if not directory.is_dir():
        _download(source, directory, report)
    return sorted(directory.iterdir())


def _download(source: CrdSource, directory: Path, report: Report) -> None:
    report(f"custom resources: downloading {source.module} {source.version}")
    go = find_go(required_go(_PINS / "go.mod"), report)
    downloaded = json.loads(go.output("mod", "download", "-json", f"{source.module}@{source.version}", directory=_PINS))
    directory.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f"{directory.name}.partial-", dir=directory.parent))
    try:
        for file in Path(downloaded["Dir"]).glob(source.pattern):
            shutil.copyfile(file, partial / file.name)
        if not directory.is_dir():
            partial.rename(directory)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def definitions(files: list[Path]) -> Iterator[tuple[str, str]]:
    """Name and text of each definition: the text unread, because PyYAML refuses some of what the API server accepts."""
    for file in files:
        for document in re.split(r"^---\s*$", file.read_text(encoding="utf-8"), flags=re.MULTILINE):
            if name := re.search(r"^  name: (\S+)$", document, re.MULTILINE):
                yield name.group(1), document


def apply_crd(api: Api, name: str, text: str) -> None:
    """Install or update one definition."""
    api.apply(f"{_PATH}/{name}", text)


def established(api: Api) -> set[str]:
    """The names of the definitions that the API server serves."""
    return {crd["metadata"]["name"] for crd in api.get(_PATH)["items"] if _is_established(crd)}


def _is_established(crd: Object) -> bool:
    conditions = crd.get("status", {}).get("conditions") or []
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)
