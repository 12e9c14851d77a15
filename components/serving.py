"""The serving layer: a vLLM server for one model, reachable inside the cluster."""

from functools import reduce

import pulumi
import pulumi_kubernetes as kubernetes

from components.deployment import (
    PREPARE_PROGRAM,
    References,
    ServingPlan,
    deployment_spec,
    labels,
    selector,
)
from components.namespace import Namespace
from neuron.images import PORT


class Serving(pulumi.ComponentResource):
    """Deployment, Service and what they need. `url` is the OpenAI-compatible endpoint inside the cluster."""

    url: pulumi.Output[str]

    def __init__(
        self,
        plan: ServingPlan,
        provider: kubernetes.Provider,
        namespace: Namespace,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register the layer in `namespace`, which also knows where the Hugging Face token is.

        Only the Deployment waits for what `opts` says that the layer depends on.
        """
        super().__init__("neuron-serving:index:Serving", plan.name, {}, opts)
        child = pulumi.ResourceOptions(parent=self, provider=provider)
        needed = pulumi.ResourceOptions(depends_on=opts.depends_on if opts else None)
        metadata: kubernetes.meta.v1.ObjectMetaArgsDict = {"namespace": namespace.name, "labels": labels(plan)}

        account = kubernetes.core.v1.ServiceAccount(
            plan.name, metadata=metadata, automount_service_account_token=False, opts=child
        )
        programs = kubernetes.core.v1.ConfigMap(
            f"{plan.name}-programs",
            metadata=metadata,
            data={PREPARE_PROGRAM.name: PREPARE_PROGRAM.read_text()},
            opts=child,
        )
        kubernetes.policy.v1.PodDisruptionBudget(
            plan.name,
            metadata=metadata,
            spec={"selector": {"match_labels": selector(plan)}, "max_unavailable": 1},
            opts=child,
        )
        references = References(
            account.metadata["name"], programs.metadata["name"], plan.token_secret or namespace.token_secret
        )
        deployment = kubernetes.apps.v1.Deployment(
            plan.name,
            metadata=metadata,
            spec=deployment_spec(plan, references),
            opts=reduce(pulumi.ResourceOptions.merge, [child, needed, _deadline(plan.rollout.await_timeout_seconds)]),
        )
        # The Deployment's own await has seen its pods ready; waiting for their endpoints again takes ten seconds more.
        service = kubernetes.core.v1.Service(
            plan.name,
            metadata={**metadata, "name": plan.name, "annotations": {"pulumi.com/skipAwait": "true"}},
            spec={"selector": selector(plan), "ports": [{"name": "http", "port": PORT, "target_port": "http"}]},
            opts=pulumi.ResourceOptions.merge(child, pulumi.ResourceOptions(depends_on=[deployment])),
        )
        self.url = pulumi.Output.concat("http://", service.metadata["name"], ".", namespace.name, f".svc:{PORT}/v1")
        pulumi.log.info(plan.rollout.forecast, self)
        self.register_outputs({"url": self.url})


def _deadline(seconds: int) -> pulumi.ResourceOptions:
    timeout = f"{seconds}s"
    return pulumi.ResourceOptions(custom_timeouts=pulumi.CustomTimeouts(create=timeout, update=timeout))
