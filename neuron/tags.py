"""The tags by which what a stack made on AWS is found again, and told from what others made."""

# On everything that a stack itself makes; its value is the stack's name.
STACK_TAG = "neuron-serving:stack"
LOAD_BALANCER_CLUSTER_TAG = "elbv2.k8s.aws/cluster"


def stack_cluster_name(project: str, stack: str) -> str:
    """The name of the EKS cluster that a stack of mode `create` makes."""
    return f"{project}-{stack}"


def cluster_tags(eks_name: str) -> dict[str, str]:
    """Tags, each enough by itself, of what controllers in a cluster make: load balancers, volumes, interfaces, nodes.

    Sources: AWS Load Balancer Controller, "Subnet and resource tags"; Kubernetes cloud provider AWS and Karpenter
    ("kubernetes.io/cluster"); Amazon VPC CNI plugin, "Cluster tag".
    """
    return {
        LOAD_BALANCER_CLUSTER_TAG: eks_name,
        f"kubernetes.io/cluster/{eks_name}": "owned",
        "cluster.k8s.amazonaws.com/name": eks_name,
    }
