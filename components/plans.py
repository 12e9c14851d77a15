"""From settings to plans: what each model server will be, with everything derived that the domain derives."""

from dataclasses import dataclass

from components.checks import to_model
from components.deployment import ServingPlan
from components.platform_checks import installs_scheduler_extension
from components.settings import AcceleratorSettings, ChartsSettings, ServingSettings, Settings
from neuron.images import image_line, model_arguments
from neuron.instances import InstanceType, instance_type
from neuron.memory import container_memory_gib
from neuron.placement import NEURON_SCHEDULER, Pool, chips_per_pod, free_slots, needs_neighbouring_chips
from neuron.rollout import Situation, derive_rollout
from neuron.startup import start_up


@dataclass(frozen=True)
class AcceleratorPlan:
    """What the Neuron chart installs and where it comes from, with the scheduler extension decided."""

    settings: AcceleratorSettings
    charts: ChartsSettings
    scheduler_extension: bool


def accelerator_plans(settings: Settings) -> tuple[AcceleratorPlan, ...]:
    """The plan of the accelerator layer; none where the cluster has it already."""
    if settings.accelerator is None:
        return ()
    return (AcceleratorPlan(settings.accelerator, settings.charts, installs_scheduler_extension(settings)),)


def serving_plans(settings: Settings) -> tuple[ServingPlan, ...]:
    """The plan of every model server of a stack whose settings were checked."""
    return tuple(_plan(serving, settings) for serving in settings.serving)


def _plan(serving: ServingSettings, settings: Settings) -> ServingPlan:
    pool = _pool(serving, settings)
    line = image_line(serving.image_line)
    model = to_model(serving.model)
    chips = chips_per_pod(model.tensor_parallel, pool.instance)
    rollout = derive_rollout(
        Situation(
            replicas=serving.replicas,
            slots=serving.replicas + free_slots(pool, chips, _all_pods(serving.node_group, settings, pool.instance)),
            # Nothing keeps compiled artifacts between pods yet: every new pod starts cold.
            start=start_up(model, cached=False),
            longest_request_seconds=serving.longest_request_seconds,
            line=line,
        )
    )
    return ServingPlan(
        name=serving.name,
        namespace=serving.namespace,
        replicas=serving.replicas,
        line=line,
        model=model,
        instance=pool.instance,
        chips=chips,
        memory_gib=serving.memory_gib or container_memory_gib(model),
        model_arguments=model_arguments(line, model, serving.neuron_config),
        token_secret=serving.hf_token_secret,
        rollout=rollout,
        scheduler=_scheduler(chips, pool.instance, settings),
    )


def _scheduler(chips: int, instance: InstanceType, settings: Settings) -> str | None:
    """The Neuron scheduler for pods that need it, and for all where the stack file says `always`; else the default."""
    if not installs_scheduler_extension(settings):
        return None
    always = settings.accelerator is not None and settings.accelerator.scheduler_extension == "always"
    return NEURON_SCHEDULER if always or needs_neighbouring_chips(chips, instance) else None


def _pool(serving: ServingSettings, settings: Settings) -> Pool:
    group = settings.node_group(serving.node_group)
    if group is None:
        raise ValueError(f"{serving.name}: no node group {serving.node_group}")
    return Pool(instance_type(group.instance_type), group.nodes)


def _all_pods(node_group: str, settings: Settings, instance: InstanceType) -> list[int]:
    """Chips of every serving pod on the node group, this server's own included."""
    users = [one for one in settings.serving if one.node_group == node_group]
    return [chips_per_pod(one.model.tensor_parallel, instance) for one in users for _ in range(one.replicas)]
