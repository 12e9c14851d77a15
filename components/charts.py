"""The Helm charts that a stack may install: name, repository and version, each once."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from components.settings.charts import ChartsSettings


@dataclass(frozen=True)
class Chart:
    """A chart of an OCI registry (`repository` begins with oci://) or of a chart repository."""

    name: str
    repository: str
    version: str

    @property
    def is_oci(self) -> bool:
        """Whether the repository is an OCI registry, which Helm addresses by chart."""
        return self.repository.startswith("oci://")


CHARTS: Mapping[str, Chart] = MappingProxyType(
    {
        "kube-prometheus-stack": Chart(
            "kube-prometheus-stack", "https://prometheus-community.github.io/helm-charts", "88.5.3"
        ),
        "neuron": Chart("neuron-helm-chart", "oci://public.ecr.aws/neuron", "1.10.0"),
        "load-balancer-controller": Chart("aws-load-balancer-controller", "https://aws.github.io/eks-charts", "3.5.0"),
        "envoy-gateway": Chart("gateway-helm", "oci://docker.io/envoyproxy", "1.9.0"),
        "ingress-nginx": Chart("ingress-nginx", "https://kubernetes.github.io/ingress-nginx", "4.15.1"),
        "keda": Chart("keda", "https://kedacore.github.io/charts", "2.20.2"),
        # Kubernetes 1.36 needs 1.13 or newer.
        "karpenter": Chart("karpenter", "oci://public.ecr.aws/karpenter", "1.14.1"),
        "prometheus-adapter": Chart(
            "prometheus-adapter", "https://prometheus-community.github.io/helm-charts", "5.3.0"
        ),
    }
)


@dataclass(frozen=True)
class ChartSource:
    """Where Helm finds a chart. A folder has one version of a chart, and no repository."""

    chart: str
    version: str | None = None
    repository: str | None = None


def chart_source(chart: Chart, settings: ChartsSettings) -> ChartSource:
    """The chart's own repository, or what the stack file says instead; a folder's path starts at the project's root."""
    if settings.folder is not None:
        folder = Path(pulumi.get_root_directory()) / Path(settings.folder).expanduser()
        return ChartSource(str(folder / chart.name))
    if settings.mirror is not None:
        return ChartSource(f"{settings.mirror.rstrip('/')}/{chart.name}", chart.version)
    if chart.is_oci:
        return ChartSource(f"{chart.repository}/{chart.name}", chart.version)
    return ChartSource(chart.name, chart.version, chart.repository)


def install(
    key: str, namespace: str, values: Mapping[str, Any], settings: ChartsSettings, opts: pulumi.ResourceOptions
) -> kubernetes.helm.v4.Chart:
    """Register a chart of the table; its objects are resources of their own, which policies and previews see."""
    source = chart_source(CHARTS[key], settings)
    return kubernetes.helm.v4.Chart(
        key,
        chart=source.chart,
        version=source.version,
        repository_opts={"repo": source.repository} if source.repository else None,
        namespace=namespace,
        values=values,
        opts=opts,
    )


def install_release(
    key: str,
    namespace: str,
    values: Mapping[str, Any],
    settings: ChartsSettings,
    opts: pulumi.ResourceOptions,
) -> kubernetes.helm.v3.Release:
    """Register a chart of the table as Helm itself would install it, as one resource.

    For charts that do not work as plain objects: those that need Helm's hooks, and those that make other certificates
    each time they are rendered, which would be a change in every preview (docs/adr/0017).
    """
    source = chart_source(CHARTS[key], settings)
    return kubernetes.helm.v3.Release(
        key,
        name=key,
        chart=source.chart,
        version=source.version,
        repository_opts={"repo": source.repository} if source.repository else None,
        namespace=namespace,
        values=values,
        opts=opts,
    )
