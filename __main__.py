"""vLLM on AWS Trainium and Inferentia: the layers of a stack, in reading order."""

import pulumi

from components.cluster import Cluster
from components.configuration import hf_token, load_settings
from components.model_cache import ModelCache
from components.namespace import Namespace
from components.nodegroup import ExistingNodeGroup
from components.plans import serving_plans
from components.serving import Serving

settings = load_settings()
plans = serving_plans(settings)

cluster = Cluster("cluster", settings.cluster)

for group in settings.node_groups:
    ExistingNodeGroup(group)

cache = ModelCache("model-cache", settings.model_cache, cluster.provider) if settings.model_cache else None

namespaces = {
    name: Namespace(name, cluster.provider, hf_token(), cache) for name in {plan.namespace: None for plan in plans}
}

servers = [Serving(plan, cluster.provider, namespaces[plan.namespace]) for plan in plans]

pulumi.export("urls", {plan.name: server.url for plan, server in zip(plans, servers, strict=True)})
