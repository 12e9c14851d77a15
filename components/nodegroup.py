"""The node group layer: Neuron nodes, made here or by others."""

import pulumi

from components.settings import NodeGroupSettings


class ExistingNodeGroup(pulumi.ComponentResource):
    """Neuron nodes that something else made: registers no resource, states the capacity that policies count with."""

    def __init__(self, settings: NodeGroupSettings, opts: pulumi.ResourceOptions | None = None) -> None:
        """State the node group's instance type and the most nodes that it has."""
        capacity = {"instanceType": settings.instance_type, "nodes": settings.nodes}
        super().__init__("neuron-serving:index:ExistingNodeGroup", settings.name, dict(capacity), opts)
        self.register_outputs(dict(capacity))
