"""The eks plugin: constructs a cluster."""

from collections.abc import Iterator
from importlib import metadata

import pulumi
from pulumi.provider import ConstructResult, Provider

from stand_ins.eks.cluster import INPUTS, Cluster

VERSION = metadata.version("pulumi-eks")
NAME = f"stand-in for pulumi-eks {VERSION}"
_NOTICE = f"{NAME}: this cluster is of the same resources as the real one's, and its control plane a local one"
_CLUSTER = "eks:index:Cluster"
_SUBNETS = ("subnetIds", "privateSubnetIds", "publicSubnetIds")


class EksProvider(Provider):
    """Constructs eks:index:Cluster and nothing else."""

    def __init__(self) -> None:
        super().__init__(VERSION)

    def construct(
        self, name: str, resource_type: str, inputs: pulumi.Inputs, options: pulumi.ResourceOptions | None = None
    ) -> ConstructResult:
        """The component's URN and outputs.

        Raises:
            InputPropertyError: another component, or an input that the stand-in does not have.
        """
        if resource_type != _CLUSTER:
            raise pulumi.InputPropertyError("", f"{NAME} has {_CLUSTER} only, not {resource_type}")
        for key, reason in _faults(inputs):
            raise pulumi.InputPropertyError(key, f"{NAME}: {key} {reason}")
        cluster = Cluster(name, inputs, options)
        pulumi.log.info(_NOTICE, cluster)
        return ConstructResult(cluster.urn, cluster.outputs)


def _faults(inputs: pulumi.Inputs) -> Iterator[tuple[str, str]]:
    """Where a program wants a cluster that the stand-in does not make."""
    yield from ((key, "is not an input that the stand-in has") for key in inputs if key not in INPUTS)
    if inputs.get("vpcId") is None:
        yield "vpcId", "is missing; the stand-in has no default VPC"
    if all(inputs.get(key) is None for key in _SUBNETS):
        yield "subnetIds", f"is missing; give it, or one of {', '.join(_SUBNETS[1:])}"
    if inputs.get("skipDefaultNodeGroup") is not True:
        yield "skipDefaultNodeGroup", "has to be true; the stand-in makes no default node group"
