"""What stands between clients and servers."""

from typing import Literal

from pydantic import Field

from components.settings.shapes import CertificateArn, Cidr, DnsLabel, Hostname, Section
from neuron.edge import DEFAULT_QUEUE_FACTOR, RETRY_AFTER_SECONDS

EdgeKind = Literal["none", "nlb", "ingress-nginx", "envoy-gateway"]
# The kinds that read requests: only these can limit them, ask for a key, and tell hosts and paths apart.
GATEWAYS: tuple[EdgeKind, ...] = ("ingress-nginx", "envoy-gateway")


class TlsSettings(Section):
    """Where TLS ends: at the load balancer, with a certificate of ACM, or at the gateway, with a Secret of type tls."""

    certificate_arn: CertificateArn | None = None
    secret: DnsLabel | None = None


class LimitsSettings(Section):
    """What is let in; the rest is answered 429 with Retry-After.

    `queueFactor` is how many requests each server has at most, in multiples of its batch (replicas x maxNumSeqs).
    `requestsPerMinute` is what one client may send: the owner of a key, or with ingress-nginx an address.
    """

    queue_factor: float = Field(default=DEFAULT_QUEUE_FACTOR, ge=1, le=100)
    retry_after_seconds: int = Field(default=RETRY_AFTER_SECONDS, ge=1, le=3600)
    requests_per_minute: int | None = Field(default=None, ge=1)
    body_mib: int = Field(default=1, ge=1, le=1024)


class EdgeSettings(Section):
    """How requests reach the servers from outside the cluster.

    `nlb` only forwards connections. `envoy-gateway` limits, asks for a key and passes /v1 alone. `ingress-nginx` does
    so too, and is retired upstream since March 2026: no fault in it is mended any more. The load balancer is `internal`
    unless `scheme` says otherwise. A stack with several servers gives each the host NAME.`hostname`. Keys are in the
    stack's secret `apiKeys`, or in a Secret that exists in the servers' namespaces (`apiKeySecret`).
    `loadBalancerController` says whether this stack installs the AWS Load Balancer Controller: by itself in a cluster
    that it creates.
    """

    kind: EdgeKind
    scheme: Literal["internal", "internet-facing"] = "internal"
    source_ranges: tuple[Cidr, ...] = Field(default=(), strict=False)
    hostname: Hostname | None = None
    tls: TlsSettings | None = None
    limits: LimitsSettings | None = None
    api_key_secret: DnsLabel | None = None
    proxies: int = Field(default=2, ge=1, le=100)
    load_balancer_controller: bool | None = None
