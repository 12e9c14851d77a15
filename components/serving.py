"""The serving layer: a vLLM server for one model, reachable inside the cluster."""

from collections.abc import Mapping, Sequence

import pulumi
import pulumi_kubernetes as kubernetes

from components.deployment import (
    PUBLISH_RETRIES,
    References,
    ServingPlan,
    deployment_spec,
    disruption_budget_spec,
    labels,
    publish_job_spec,
    selector,
)
from components.hf_token import HfToken, secret_statements, token_from_secrets_manager
from components.namespace import Namespace
from components.network_policy import publisher_policy_spec, server_policy_spec
from components.programs import config_map_data
from components.statements import Statement
from neuron.images import PORT
from neuron.rollout import publish_timeout_seconds


class Serving(pulumi.ComponentResource):
    """Publish Job, Deployment, Service and what they need.

    `url` is the OpenAI-compatible endpoint in the cluster, `deployment` the name of the Deployment.
    """

    url: pulumi.Output[str]
    deployment: pulumi.Output[str]

    def __init__(
        self,
        plan: ServingPlan,
        provider: kubernetes.Provider,
        namespace: Namespace,
        nodes: Sequence[pulumi.Resource] = (),
        eks_name: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register the layer in `namespace`, which knows the Hugging Face token's Secret and the cache's claim.

        Only the workloads wait for `nodes`: what makes nodes and their chips appear. `eks_name` is the cluster's name
        on EKS, by which pods get rights on AWS.
        """
        super().__init__("neuron-serving:index:Serving", plan.name, {}, opts)
        child = pulumi.ResourceOptions(parent=self, provider=provider)
        metadata: kubernetes.meta.v1.ObjectMetaArgsDict = {"namespace": namespace.name, "labels": labels(plan)}

        publisher = _publisher(plan)
        accounts = {
            name: kubernetes.core.v1.ServiceAccount(
                name, metadata=metadata, automount_service_account_token=False, opts=child
            ).metadata["name"]
            for name in ([plan.name, publisher] if plan.publishes else [plan.name])
        }
        programs = kubernetes.core.v1.ConfigMap(
            f"{plan.name}-programs", metadata=metadata, data=config_map_data(plan.artifact), opts=child
        )
        kubernetes.policy.v1.PodDisruptionBudget(
            plan.name, metadata=metadata, spec=disruption_budget_spec(plan), opts=child
        )
        _network_policies(plan, metadata, child)
        token = HfToken(secret=plan.token_secret or namespace.token_secret)
        granted = self._grant(plan, namespace, accounts, eks_name or "", nodes)
        if plan.token_secret_arn is not None:
            in_cluster = pulumi.ResourceOptions.merge(child, pulumi.ResourceOptions(depends_on=nodes))
            token, provider_class = token_from_secrets_manager(plan.name, plan.token_secret_arn, metadata, in_cluster)
            granted.append(provider_class)
        references = References(
            service_account=accounts[plan.name],
            publisher_account=accounts.get(publisher),
            programs=programs.metadata["name"],
            cache_claim=namespace.cache_claim,
            token=token,
        )
        before = [*nodes, *granted]
        published = [_publish(plan, references, metadata, child, before)] if plan.publishes else []
        deployment = kubernetes.apps.v1.Deployment(
            plan.name,
            metadata=metadata,
            spec=deployment_spec(plan, references),
            opts=_merged(child, plan.rollout.await_timeout_seconds, [*before, *published]),
        )
        service = kubernetes.core.v1.Service(
            plan.name,
            # The Deployment's own await has seen its pods ready; waiting for their endpoints takes ten seconds more.
            metadata={**metadata, "name": plan.name, "annotations": {"pulumi.com/skipAwait": "true"}},
            spec={"selector": selector(plan), "ports": [{"name": "http", "port": PORT, "target_port": "http"}]},
            opts=pulumi.ResourceOptions.merge(child, pulumi.ResourceOptions(depends_on=[deployment])),
        )
        self.url = pulumi.Output.concat("http://", service.metadata["name"], ".", namespace.name, f".svc:{PORT}/v1")
        self.deployment = deployment.metadata["name"]
        pulumi.log.info(plan.rollout.forecast, self)
        self.register_outputs({"url": self.url})

    def _grant(
        self,
        plan: ServingPlan,
        namespace: Namespace,
        accounts: Mapping[str, pulumi.Input[str]],
        eks_name: pulumi.Input[str],
        nodes: Sequence[pulumi.Resource],
    ) -> list[pulumi.Resource]:
        """Give service accounts (by resource name) what their pods need on AWS: the model cache, the token's secret."""
        granted: list[pulumi.Resource] = []
        for name, account in accounts.items():
            statements = _statements(plan, namespace, publishes=name == _publisher(plan))
            if not statements:
                continue
            # Imported here: pulumi_aws costs every run of a program about a second, also where nothing is on AWS.
            from components.pod_identity import grant

            needed = pulumi.ResourceOptions(depends_on=nodes)
            granted += grant(name, eks_name, namespace.name, account, statements, self, needed)
        return granted


def _publisher(plan: ServingPlan) -> str:
    return f"{plan.name}-publisher"


def _statements(plan: ServingPlan, namespace: Namespace, *, publishes: bool) -> list[pulumi.Input[Sequence[Statement]]]:
    """What pods that load the model, or publish it, need on AWS."""
    statements: list[pulumi.Input[Sequence[Statement]]] = []
    if namespace.cache is not None:
        statements += namespace.cache.statements(publishes=publishes)
    if plan.token_secret_arn is not None and (publishes or plan.downloads):
        statements.append(secret_statements(plan.token_secret_arn))
    return statements


def _network_policies(
    plan: ServingPlan, metadata: kubernetes.meta.v1.ObjectMetaArgsDict, child: pulumi.ResourceOptions
) -> None:
    specs = {plan.name: server_policy_spec(plan)}
    if plan.publishes:
        specs[f"{plan.name}-publisher"] = publisher_policy_spec(plan)
    for name, spec in specs.items():
        kubernetes.networking.v1.NetworkPolicy(name, metadata=metadata, spec=spec, opts=child)


def _publish(
    plan: ServingPlan,
    references: References,
    metadata: kubernetes.meta.v1.ObjectMetaArgsDict,
    child: pulumi.ResourceOptions,
    nodes: Sequence[pulumi.Resource],
) -> pulumi.Resource:
    """The Job that the Deployment waits for: pods that start find their artifact complete."""
    timeout_seconds = publish_timeout_seconds(plan.model, PUBLISH_RETRIES)
    return kubernetes.batch.v1.Job(
        f"{plan.name}-publish",
        metadata={**metadata, "labels": labels(plan, "publisher")},
        spec=publish_job_spec(plan, references),
        opts=_merged(child, timeout_seconds, nodes),
    )


def _merged(
    child: pulumi.ResourceOptions, timeout_seconds: int, depends_on: Sequence[pulumi.Resource]
) -> pulumi.ResourceOptions:
    timeout = f"{timeout_seconds}s"
    timeouts = pulumi.CustomTimeouts(create=timeout, update=timeout)
    own = pulumi.ResourceOptions(custom_timeouts=timeouts, depends_on=depends_on)
    return pulumi.ResourceOptions.merge(child, own)
