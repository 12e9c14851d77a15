"""NetworkPolicies of model servers: who may talk to them, and to whom they may talk.

On EKS the network policy agent of the VPC CNI enforces them, where the add-on `vpc-cni` is configured with
`enableNetworkPolicy: "true"`: components/addons.py does that on clusters made here; of a cluster that exists it is its
owner's decision. Where nothing enforces them, as on the local control plane, the API server keeps them all the same.
Probes need no rule: they come from the pod's own node, which every network plugin lets through.
"""

import pulumi_kubernetes.networking.v1 as networking

from components.deployment import ServingPlan, publisher_selector, selector

# The label that the API server gives every namespace.
_NAMESPACE_NAME = "kubernetes.io/metadata.name"
# CoreDNS carries the name of its forerunner, on EKS as elsewhere.
_DNS_NAMESPACE, _DNS_LABELS = "kube-system", {"k8s-app": "kube-dns"}
_DNS_PORT, _HTTPS_PORT = 53, 443


def server_policy_spec(plan: ServingPlan) -> networking.NetworkPolicySpecArgsDict:
    """Requests from the server's own namespace and from `plan.callers`; out goes what its init container needs.

    A server that finds its model published asks DNS and nobody else: the cache is mounted for it by other pods.
    """
    namespaces: list[networking.NetworkPolicyPeerArgsDict] = [
        {"namespace_selector": {"match_labels": {_NAMESPACE_NAME: name}}} for name in plan.callers
    ]
    # The load balancer's own rules keep others out; its health checks come from addresses that nobody can state.
    outside: list[networking.NetworkPolicyPeerArgsDict] = (
        [{"ip_block": {"cidr": "0.0.0.0/0"}}] if plan.called_from_outside else []
    )
    return {
        "pod_selector": {"match_labels": selector(plan)},
        "policy_types": ["Ingress", "Egress"],
        "ingress": [
            {"from_": [{"pod_selector": {}}, *namespaces, *outside], "ports": [{"protocol": "TCP", "port": "http"}]}
        ],
        "egress": _egress(downloads=plan.downloads),
    }


def publisher_policy_spec(plan: ServingPlan) -> networking.NetworkPolicySpecArgsDict:
    """Nobody talks to a publisher; it downloads."""
    return {
        "pod_selector": {"match_labels": publisher_selector(plan)},
        "policy_types": ["Ingress", "Egress"],
        "egress": _egress(downloads=True),
    }


def _egress(*, downloads: bool) -> list[networking.NetworkPolicyEgressRuleArgsDict]:
    """DNS, and HTTPS to anywhere for what downloads: Hugging Face's storage has no addresses that could be listed."""
    dns: networking.NetworkPolicyEgressRuleArgsDict = {
        "to": [
            {
                "namespace_selector": {"match_labels": {_NAMESPACE_NAME: _DNS_NAMESPACE}},
                "pod_selector": {"match_labels": _DNS_LABELS},
            }
        ],
        "ports": [{"protocol": protocol, "port": _DNS_PORT} for protocol in ("UDP", "TCP")],
    }
    return [dns, {"ports": [{"protocol": "TCP", "port": _HTTPS_PORT}]}] if downloads else [dns]
