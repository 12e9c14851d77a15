"""An EKS cluster that exists: whether it can take nodes, and how it is reached."""

from dataclasses import dataclass

from components.faults import ConfigurationError, Fault
from components.lookups.aws import Aws, AwsError

# A cluster that is being updated serves its API and takes nodes.
USABLE = ("ACTIVE", "UPDATING")


@dataclass(frozen=True)
class EksCluster:
    """A usable cluster. `version` is its Kubernetes minor, `certificate_authority` base64 of PEM."""

    name: str
    version: str
    endpoint: str
    certificate_authority: str
    subnet_ids: tuple[str, ...]


def eks_cluster(aws: Aws, path: str, name: str) -> EksCluster:
    """The cluster of that name; ConfigurationError where there is none (naming those there are) or it is not usable."""
    try:
        with aws.asking("eks:DescribeCluster"):
            cluster = aws.eks.describe_cluster(name=name)["cluster"]
    except AwsError as error:
        if error.code != "ResourceNotFoundException":
            raise
        allowed = f"an EKS cluster in {aws.region}: {', '.join(_names(aws)) or 'none was found'}"
        raise ConfigurationError([Fault(path, name, allowed, "correct the name or aws:region")]) from None
    status = cluster.get("status", "")
    if status not in USABLE:
        found = f"{name}, whose status is {status}"
        raise ConfigurationError(
            [Fault(path, found, f"a cluster that is {' or '.join(USABLE)}", "wait, or use another")]
        )
    return EksCluster(
        name,
        cluster["version"],
        cluster["endpoint"],
        cluster["certificateAuthority"]["data"],
        tuple(cluster["resourcesVpcConfig"]["subnetIds"]),
    )


def _names(aws: Aws) -> list[str]:
    """A hint: the names of the clusters, none where they may not be listed."""
    try:
        with aws.asking("eks:ListClusters"):
            pages = aws.eks.get_paginator("list_clusters").paginate()
            return sorted(name for page in pages for name in page["clusters"])
    except AwsError:
        return []
