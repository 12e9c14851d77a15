"""The CustomResourceDefinitions that the stacks need, from the files inside the upstream projects' own Go modules."""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import cast

import yaml

from tools.control_plane.api import Api, ApiError
from tools.control_plane.nodes import Object
from tools.errors import Report
from tools.go_build import cache_directory
from tools.go_compiler import find_go
from tools.versions import GO_MODULES, module_version, required_go

_PINS = GO_MODULES / "crds"
_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@dataclass(frozen=True)
class CrdSource:
    """Files, relative to the root of a Go module that tools/go/crds/go.mod pins."""

    name: str
    module: str
    files: tuple[str, ...]

    @property
    def version(self) -> str:
        return module_version(self.module, _PINS / "go.mod")


_ENVOY_GATEWAY_FILES = "charts/gateway-crds-helm/templates/generated"

# By name, what a control plane may be asked for. Only what stacks have objects of: the API server takes seconds for a
# large definition.
SOURCES: Mapping[str, CrdSource] = MappingProxyType(
    {
        source.name: source
        for source in (
            CrdSource(
                "prometheus-operator",
                "github.com/prometheus-operator/prometheus-operator",
                (
                    "example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml",
                    "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
                    "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
                ),
            ),
            # The operator watches all of them, whichever are used.
            CrdSource(
                "keda",
                "github.com/kedacore/keda/v2",
                (
                    "config/crd/bases/eventing.keda.sh_cloudeventsources.yaml",
                    "config/crd/bases/eventing.keda.sh_clustercloudeventsources.yaml",
                    "config/crd/bases/keda.sh_clustertriggerauthentications.yaml",
                    "config/crd/bases/keda.sh_scaledjobs.yaml",
                    "config/crd/bases/keda.sh_scaledobjects.yaml",
                    "config/crd/bases/keda.sh_triggerauthentications.yaml",
                ),
            ),
            # Those of Karpenter's core are here as the provider installs them, with its rules for labels.
            CrdSource(
                "karpenter",
                "github.com/aws/karpenter-provider-aws",
                ("pkg/apis/crds/karpenter.k8s.aws_ec2nodeclasses.yaml", "pkg/apis/crds/karpenter.sh_nodepools.yaml"),
            ),
            CrdSource(
                "gateway-api",
                "sigs.k8s.io/gateway-api",
                (
                    "config/crd/standard/gateway.networking.k8s.io_gatewayclasses.yaml",
                    "config/crd/standard/gateway.networking.k8s.io_gateways.yaml",
                    "config/crd/standard/gateway.networking.k8s.io_httproutes.yaml",
                ),
            ),
            CrdSource(
                "envoy-gateway",
                "github.com/envoyproxy/gateway",
                (
                    f"{_ENVOY_GATEWAY_FILES}/gateway.envoyproxy.io_backendtrafficpolicies.yaml",
                    f"{_ENVOY_GATEWAY_FILES}/gateway.envoyproxy.io_clienttrafficpolicies.yaml",
                    f"{_ENVOY_GATEWAY_FILES}/gateway.envoyproxy.io_envoyproxies.yaml",
                    f"{_ENVOY_GATEWAY_FILES}/gateway.envoyproxy.io_securitypolicies.yaml",
                ),
            ),
        )
    }
)
# What the rehearsal's stack has objects of.
DEFAULT_SOURCES = ("prometheus-operator",)

# A line of a Helm template that decides whether the definition below it is installed.
_HELM_ACTION = re.compile(r"^\{\{.*\}\}$", re.MULTILINE)


class _Loader(yaml.SafeLoader):
    """Reads a lone `=` as text, as YAML 1.2 and Kubernetes do; PyYAML knows it as a value of YAML 1.1 and fails."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:value"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def all_definitions(names: Iterable[str], report: Report) -> list[Object]:
    """The definitions of the sources of these names; KeyError for a name that is not in SOURCES, else as below."""
    return [each for name in names for each in crd_definitions(SOURCES[name], report)]


def crd_definitions(source: CrdSource, report: Report) -> list[Object]:
    """The definitions of `source`, as JSON from the user's cache of tools, where a first call puts them.

    Not as YAML: what the API server spends on a large definition is mostly the parsing of YAML.

    Raises:
        ToolchainError: there is no Go, or the module cannot be had or is not the one that go.sum names.
    """
    key = hashlib.sha256("\n".join([source.version, *source.files]).encode()).hexdigest()[:16]
    file = cache_directory() / f"crds-{source.name}-{key}.json"
    if not file.is_file():
        report(f"custom resources: fetching {source.module} {source.version}")
        found = [each for path in _module_files(source, report) for each in read_definitions(path)]
        file.parent.mkdir(parents=True, exist_ok=True)
        # By a rename, so that what a killed command leaves never counts.
        partial = file.with_suffix(f".partial-{os.getpid()}")
        partial.write_text(json.dumps(found), encoding="utf-8")
        partial.rename(file)
    return cast(list[Object], json.loads(file.read_text(encoding="utf-8")))


def _module_files(source: CrdSource, report: Report) -> list[Path]:
    go = find_go(required_go(_PINS / "go.mod"), report)
    answer = go.output("mod", "download", "-json", f"{source.module}@{source.version}", directory=_PINS)
    return [Path(json.loads(answer)["Dir"]) / file for file in source.files]


def read_definitions(file: Path) -> list[Object]:
    """The CustomResourceDefinitions of a YAML file, which may be a Helm template that leaves them as they are."""
    # _Loader makes nothing but plain data, as SafeLoader.
    documents = yaml.load_all(_HELM_ACTION.sub("", file.read_text(encoding="utf-8")), _Loader)
    return [each for each in documents if each and each["kind"] == "CustomResourceDefinition"]


def apply_definition(api: Api, definition: Object) -> None:
    """Install or update one definition."""
    api.apply(f"{_PATH}/{definition['metadata']['name']}", definition)


def resource_path(definition: Object, version: str, namespace: str) -> str:
    """Where the API server keeps the objects of `definition`, in a namespace where they belong to one."""
    plural = definition["spec"]["names"]["plural"]
    inside = f"namespaces/{namespace}/" if definition["spec"]["scope"] == "Namespaced" else ""
    return f"/apis/{definition['spec']['group']}/{version}/{inside}{plural}"


def is_served(api: Api, definition: Object) -> bool:
    """Whether the API server offers the resource in all the versions that its definition names."""
    group, plural = definition["spec"]["group"], definition["spec"]["names"]["plural"]
    versions = (version["name"] for version in definition["spec"]["versions"] if version["served"])
    return all(plural in _resources(api, f"/apis/{group}/{version}") for version in versions)


def _resources(api: Api, path: str) -> set[str]:
    try:
        return {resource["name"] for resource in api.get(path)["resources"]}
    except ApiError:
        return set()
