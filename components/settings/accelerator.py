"""How pods get chips."""

from typing import Literal

from components.settings.shapes import Section, TaggedImage


class AcceleratorSettings(Section):
    """What the Neuron Helm chart installs. Leave the section out where the cluster has it already.

    `devices` is how pods get chips: the two ways exclude each other. The scheduler extension comes by itself (`auto`)
    where a pod needs it; `kubeSchedulerImage` is the scheduler that it extends, of the cluster's minor version. The
    node problem detector reports broken chips (`detect`) and has their nodes replaced (`recover`).
    """

    devices: Literal["device-plugin", "dra"] = "device-plugin"
    scheduler_extension: Literal["auto", "always"] = "auto"
    kube_scheduler_image: TaggedImage | None = None
    node_problem_detector: Literal["none", "detect", "recover"] = "recover"
