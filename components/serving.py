"""The serving layer: a vLLM server for one model, reachable inside the cluster."""

from collections.abc import Sequence

import pulumi
import pulumi_kubernetes as kubernetes

from components.deployment import (
    PUBLISH_RETRIES,
    References,
    ServingPlan,
    deployment_spec,
    labels,
    publish_job_spec,
    selector,
)
from components.hf_token import HfToken, token_from_secrets_manager
from components.namespace import Namespace
from components.network_policy import publisher_policy_spec, server_policy_spec
from components.programs import config_map_data
from neuron.images import PORT
from neuron.rollout import publish_timeout_seconds


class Serving(pulumi.ComponentResource):
    """Publish Job, Deployment, Service and what they need. `url` is the OpenAI-compatible endpoint in the cluster."""

    url: pulumi.Output[str]

    def __init__(
        self,
        plan: ServingPlan,
        provider: kubernetes.Provider,
        namespace: Namespace,
        nodes: Sequence[pulumi.Resource] = (),
        eks_name: str | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register the layer in `namespace`, which knows the Hugging Face token's Secret and the cache's claim.

        Only the workloads wait for `nodes`: what makes nodes and their chips appear. `eks_name` is the cluster's name
        on EKS, which a token in AWS Secrets Manager needs.
        """
        super().__init__("neuron-serving:index:Serving", plan.name, {}, opts)
        child = pulumi.ResourceOptions(parent=self, provider=provider)
        metadata: kubernetes.meta.v1.ObjectMetaArgsDict = {"namespace": namespace.name, "labels": labels(plan)}

        publisher = f"{plan.name}-publisher"
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
            plan.name,
            metadata=metadata,
            spec={"selector": {"match_labels": selector(plan)}, "max_unavailable": 1},
            opts=child,
        )
        _network_policies(plan, metadata, child)
        token = HfToken(secret=plan.token_secret or namespace.token_secret)
        access: list[pulumi.Resource] = []
        if plan.token_secret_arn is not None:
            token, access = token_from_secrets_manager(
                plan.name,
                plan.token_secret_arn,
                eks_name or "",
                metadata,
                {name: account for name, account in accounts.items() if plan.downloads or name == publisher},
                self,
                pulumi.ResourceOptions.merge(child, pulumi.ResourceOptions(depends_on=nodes)),
            )
        references = References(
            service_account=accounts[plan.name],
            publisher_account=accounts.get(publisher),
            programs=programs.metadata["name"],
            cache_claim=namespace.cache_claim,
            token=token,
        )
        before = [*nodes, *access]
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
        pulumi.log.info(plan.rollout.forecast, self)
        self.register_outputs({"url": self.url})


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
