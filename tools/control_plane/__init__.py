"""A Kubernetes control plane on this machine with simulated Neuron nodes.

Real: API server, controllers, scheduler, etcd, schemas of the custom resources. Simulated by kwok: nodes, kubelets,
containers and accelerators, with the allocatable of `neuron.instances` and the start-up times of `neuron.startup`.
"""

from tools.control_plane.nodes import NodeGroup
from tools.control_plane.plane import ControlPlane, ControlPlaneError

__all__ = ["ControlPlane", "ControlPlaneError", "NodeGroup"]
