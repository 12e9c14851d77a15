"""The Network Load Balancer, as annotations that the AWS Load Balancer Controller reads from a Service.

https://kubernetes-sigs.github.io/aws-load-balancer-controller/latest/guide/service/annotations/
"""

from collections.abc import Mapping

from components.settings.edge import EdgeSettings
from neuron.edge import idle_seconds

# The controller takes Services of this class; the cloud provider inside Kubernetes leaves them alone.
LOAD_BALANCER_CLASS = "service.k8s.aws/nlb"
PREFIX = "service.beta.kubernetes.io/aws-load-balancer-"
# TLS 1.3, and 1.2 with forward secrecy only.
_TLS_POLICY = "ELBSecurityPolicy-TLS13-1-2-Res-2021-06"


def annotations(
    settings: EdgeSettings, port: int, longest_request_seconds: int, deregistration_seconds: int
) -> dict[str, str]:
    """What a Service says about its load balancer; pods are its targets, and see the client's own address."""
    stated = {
        "scheme": settings.scheme,
        "nlb-target-type": "ip",
        "target-group-attributes": _attributes(
            {"preserve_client_ip.enabled": "true", "deregistration_delay.timeout_seconds": str(deregistration_seconds)}
        ),
        f"listener-attributes.TCP-{port}": _attributes(
            {"tcp.idle_timeout.seconds": str(idle_seconds(longest_request_seconds))}
        ),
    }
    if settings.tls is not None and settings.tls.certificate_arn is not None:
        # A listener of type TLS has a fixed idle limit.
        del stated[f"listener-attributes.TCP-{port}"]
        stated |= {
            "ssl-cert": settings.tls.certificate_arn,
            "ssl-ports": str(port),
            "ssl-negotiation-policy": _TLS_POLICY,
            "backend-protocol": "tcp",
        }
    return {f"{PREFIX}{key}": value for key, value in stated.items()}


def _attributes(attributes: Mapping[str, str]) -> str:
    return ",".join(f"{name}={value}" for name, value in attributes.items())
