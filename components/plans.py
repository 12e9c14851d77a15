"""From settings to plans: what each model server will be, with everything derived that the domain derives."""

from collections.abc import Sequence
from dataclasses import dataclass

from components.addresses import EDGE_NAMESPACES, MONITORING_NAMESPACE
from components.autoscaling import AutoscalerPlan, ScalerPlan
from components.checks import to_model
from components.deployment import MODEL_PATH, ServingPlan, selector
from components.edges.plan import EdgePlan, Route
from components.karpenter import KarpenterPlan
from components.monitoring.observed import ObservedServer, observed
from components.platform import Platform
from components.platform_checks import installs_scheduler_extension
from components.settings import Settings
from components.settings.accelerator import AcceleratorSettings
from components.settings.charts import ChartsSettings
from components.settings.edge import EdgeSettings, LimitsSettings
from components.settings.node_groups import NodeGroupSettings
from components.settings.observability import ObservabilitySettings
from components.settings.serving import ServingSettings
from neuron.artifact import artifact
from neuron.edge import concurrency_limit, deregistration_seconds
from neuron.images import image_line, model_arguments
from neuron.instances import InstanceType, instance_type
from neuron.memory import container_memory_gib
from neuron.model import Model
from neuron.placement import NEURON_SCHEDULER, Pool, chips_per_pod, free_slots, needs_neighbouring_chips
from neuron.quota import BUCKET_KEYS, Bucket, bucket_of
from neuron.rollout import OneMoreNode, Rollout, Situation, derive_rollout
from neuron.scaling import Scaling, Schedule, derive_scaling
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


def karpenter_plans(settings: Settings, platform: Platform) -> tuple[KarpenterPlan, ...]:
    """The plan of the Karpenter layer; none where it makes no node group."""
    groups = platform.karpenter_groups
    mounts_s3 = settings.model_cache is not None and settings.model_cache.backend == "s3"
    return (KarpenterPlan(groups, platform.region, settings.charts, mounts_s3),) if groups else ()


def autoscaler_plans(settings: Settings) -> tuple[AutoscalerPlan, ...]:
    """The plan of the provider of external metrics; none where the cluster has it already, or nothing scales."""
    if settings.autoscaler is None or not settings.autoscaler.install:
        return ()
    return (AutoscalerPlan(settings.autoscaler, settings.charts),)


def scaler_plan(plan: ServingPlan, settings: Settings) -> ScalerPlan | None:
    """What scales a model server; None where the number of its replicas is fixed."""
    if plan.scaling is None or settings.autoscaler is None:
        return None
    return ScalerPlan(plan.name, plan.namespace, plan.scaling, settings.autoscaler)


@dataclass(frozen=True)
class ObservabilityPlan:
    """What is watched, and how; `instance_types` are those of the nodes with chips."""

    settings: ObservabilitySettings
    charts: ChartsSettings
    servers: tuple[ObservedServer, ...]
    instance_types: tuple[str, ...]


def observability_plan(settings: Settings, plans: Sequence[ServingPlan]) -> ObservabilityPlan | None:
    """The plan of the observability layer; None where the stack file does not ask for it."""
    if settings.observability is None:
        return None
    objectives = [one.first_token_slo_seconds for one in settings.serving]
    servers = tuple(observed(plan, objective) for plan, objective in zip(plans, objectives, strict=True))
    types = tuple(group.instance_type for group in settings.node_groups)
    return ObservabilityPlan(settings.observability, settings.charts, servers, types)


def serving_plans(settings: Settings) -> tuple[ServingPlan, ...]:
    """The plan of every model server of a stack whose settings were checked."""
    return tuple(_plan(serving, settings) for serving in settings.serving)


def edge_plan(settings: Settings, plans: Sequence[ServingPlan]) -> EdgePlan | None:
    """The plan of what stands before these servers; None where nothing does."""
    edge = settings.edge
    if edge is None or edge.kind == "none":
        return None
    by_name = {serving.name: serving for serving in settings.serving}
    routes = [_route(plan, by_name[plan.name], edge, alone=len(plans) == 1) for plan in plans]
    installs = edge.load_balancer_controller
    return EdgePlan(
        settings=edge,
        charts=settings.charts,
        routes=tuple(routes),
        installs_controller=settings.cluster.mode == "create" if installs is None else installs,
    )


def _edge_namespaces(settings: Settings) -> tuple[str, ...]:
    """Where the proxies run that call the servers."""
    kind = settings.edge.kind if settings.edge else "none"
    return (EDGE_NAMESPACES[kind],) if kind in EDGE_NAMESPACES else ()


def _route(plan: ServingPlan, serving: ServingSettings, edge: EdgeSettings, *, alone: bool) -> Route:
    limits = edge.limits or LimitsSettings()
    hostname = edge.hostname if alone or edge.hostname is None else f"{plan.name}.{edge.hostname}"
    return Route(
        server=plan.name,
        namespace=plan.namespace,
        selector=selector(plan),
        hostname=hostname,
        concurrency=concurrency_limit(plan.most_replicas, plan.model.max_num_seqs, limits.queue_factor),
        timeout_seconds=serving.longest_request_seconds,
        deregistration_seconds=deregistration_seconds(plan.rollout.drain),
    )


def publishes(serving: ServingSettings, settings: Settings) -> bool:
    """Whether a Job publishes the model first: where there is a cache, and a chip that the running pods leave free."""
    pool = _pool(serving, settings)
    return settings.model_cache is not None and _spare_slots(serving, settings, pool) > 0


def _plan(serving: ServingSettings, settings: Settings) -> ServingPlan:
    pool = _pool(serving, settings)
    line = image_line(serving.image_line)
    model = to_model(serving.model)
    chips = chips_per_pod(model.tensor_parallel, pool.instance)
    published = publishes(serving, settings)
    on_miss = serving.on_miss or ("fail" if published else "compile")
    situation = Situation(
        replicas=serving.most_replicas,
        slots=serving.most_replicas + _spare_slots(serving, settings, pool),
        start=start_up(model, cached=published),
        longest_request_seconds=serving.longest_request_seconds,
        line=line,
        fewest_replicas=serving.replicas if serving.autoscaling else None,
        chips=chips,
        one_more=one_more_node(serving.node_group, settings),
    )
    rollout = derive_rollout(situation)
    return ServingPlan(
        name=serving.name,
        namespace=serving.namespace,
        replicas=serving.replicas,
        line=line,
        model=model,
        instance=pool.instance,
        chips=chips,
        memory_gib=serving.memory_gib or container_memory_gib(model),
        artifact=artifact(line, model, serving.neuron_config, pool.instance),
        model_arguments=model_arguments(line, model, serving.neuron_config, MODEL_PATH),
        on_miss=on_miss,
        publishes=published,
        start=situation.start,
        token_secret=serving.hf_token_secret,
        token_secret_arn=serving.hf_token_secret_arn,
        callers=(MONITORING_NAMESPACE, *_edge_namespaces(settings), *serving.allow_from),
        called_from_outside=settings.edge is not None and settings.edge.kind == "nlb",
        rollout=rollout,
        scheduler=_scheduler(chips, pool.instance, settings),
        scaling=_scaling(serving, model, rollout),
    )


def _scaling(serving: ServingSettings, model: Model, rollout: Rollout) -> Scaling | None:
    stated = serving.autoscaling
    if stated is None:
        return None
    return derive_scaling(
        serving.replicas,
        stated.max_replicas,
        model,
        rollout.drain,
        serving.first_token_slo_seconds,
        tuple(Schedule(one.start, one.end, one.time_zone, one.replicas) for one in stated.schedule),
    )


def _scheduler(chips: int, instance: InstanceType, settings: Settings) -> str | None:
    """The Neuron scheduler for pods that need it, and for all where the stack file says `always`; else the default."""
    if not installs_scheduler_extension(settings):
        return None
    always = settings.accelerator is not None and settings.accelerator.scheduler_extension == "always"
    return NEURON_SCHEDULER if always or needs_neighbouring_chips(chips, instance) else None


def one_more_node(node_group: str, settings: Settings) -> OneMoreNode | None:
    """What one more node of the group would need of the quota that the stack file declares, beside the stack's nodes.

    None for a group whose capacity was reserved: no quota stands in its way, but nobody sells one node more of it.
    """
    buckets = {group.name: _bucket(group) for group in settings.node_groups}
    bucket = buckets[node_group]
    if bucket is None:
        return None
    used = sum(
        group.nodes * instance_type(group.instance_type).vcpus
        for group in settings.node_groups
        if buckets[group.name] == bucket
    )
    quotas = {BUCKET_KEYS[key]: vcpus for key, vcpus in settings.quotas.stated().items()}
    free_vcpus = max(0, quotas[bucket] - used) if bucket in quotas else None
    (group,) = (group for group in settings.node_groups if group.name == node_group)
    instance = instance_type(group.instance_type)
    return OneMoreNode(instance.name, instance.vcpus, free_vcpus)


def _bucket(group: NodeGroupSettings) -> Bucket | None:
    """The quota that the group's nodes count against; those of others are taken for on-demand."""
    return bucket_of(instance_type(group.instance_type), group.create.purchase if group.create else "on-demand")


def _pool(serving: ServingSettings, settings: Settings) -> Pool:
    group = settings.node_group(serving.node_group)
    if group is None:
        raise ValueError(f"{serving.name}: no node group {serving.node_group}")
    return Pool(instance_type(group.instance_type), group.nodes)


def _spare_slots(serving: ServingSettings, settings: Settings, pool: Pool) -> int:
    """Pods of this server that its node group could take beside all serving pods of the stack."""
    chips = chips_per_pod(serving.model.tensor_parallel, pool.instance)
    return free_slots(pool, chips, _all_pods(serving.node_group, settings, pool.instance))


def _all_pods(node_group: str, settings: Settings, instance: InstanceType) -> list[int]:
    """Chips of every serving pod on the node group, this server's own included."""
    users = [one for one in settings.serving if one.node_group == node_group]
    return [chips_per_pod(one.model.tensor_parallel, instance) for one in users for _ in range(one.most_replicas)]
