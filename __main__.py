"""vLLM on AWS Trainium and Inferentia: the layers of a stack, in reading order."""

import pulumi

from components.accelerator import Accelerator
from components.api_keys import api_keys
from components.autoscaling import Autoscaler, ServerScaler
from components.cluster import Cluster
from components.configuration import hf_token, load_platform, load_settings
from components.edge import Edge
from components.karpenter import Karpenter
from components.model_cache import ModelCache
from components.namespace import Namespace
from components.nodegroup import ExistingNodeGroup, NodeGroup
from components.observability import Observability
from components.plans import (
    accelerator_plans,
    autoscaler_plans,
    edge_plan,
    karpenter_plans,
    observability_plan,
    scaler_plan,
    serving_plans,
)
from components.serving import Serving

settings = load_settings()
plans = serving_plans(settings)
platform = load_platform(settings)


def after(*resources: pulumi.Resource) -> pulumi.ResourceOptions:
    """Wait for these layers."""
    return pulumi.ResourceOptions(depends_on=resources)


cluster = Cluster("cluster", settings.cluster, platform)

for group in settings.existing_node_groups:
    ExistingNodeGroup(group)

nodes = [NodeGroup(plan, cluster.placement(plan), after(cluster)) for plan in platform.managed_groups]
pools = [Karpenter(plan, cluster, after(cluster)) for plan in karpenter_plans(settings, platform)]

accelerators = [Accelerator(plan, cluster, after(cluster, *nodes)) for plan in accelerator_plans(settings)]

cache = None
if settings.model_cache:
    cache = ModelCache("model-cache", settings.model_cache, cluster.provider, cluster.s3_endpoint_id)

watched = observability_plan(settings, plans)
observability = Observability(watched, cluster, after(cluster, *nodes)) if watched else None

namespaces = {
    name: Namespace(name, cluster.provider, hf_token(), cache) for name in {plan.namespace: None for plan in plans}
}

needed = [cluster, *nodes, *pools, *accelerators]
servers = [Serving(plan, cluster.provider, namespaces[plan.namespace], needed, cluster.eks_name) for plan in plans]

plan = edge_plan(settings, plans)
edge = Edge(plan, cluster, namespaces, api_keys(), after(cluster, *nodes)) if plan else None

autoscalers = [Autoscaler(plan, cluster.provider, after(cluster, *nodes)) for plan in autoscaler_plans(settings)]

for serving, server in zip(plans, servers, strict=True):
    if scaler := scaler_plan(serving, settings):
        ServerScaler(scaler, server.deployment, cluster.provider, autoscalers)

pulumi.export("cluster", cluster.reference)
pulumi.export("modelBucket", cache.bucket if cache else None)
pulumi.export("urls", {plan.name: server.url for plan, server in zip(plans, servers, strict=True)})
pulumi.export("endpoints", edge.urls if edge else {})
