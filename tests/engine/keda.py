"""KEDA's operator and metrics adapter beside a control plane, the way its chart runs them inside a cluster."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.edge.programs import LOOPBACK, free_port, running
from tools import toolchain
from tools.control_plane import ControlPlane
from tools.control_plane.api import Api
from tools.control_plane.nodes import Object

NAMESPACE = "keda"
_SERVICE = "keda-metrics-adapter"
EXTERNAL_METRICS = "/apis/external.metrics.k8s.io/v1beta1"


@contextmanager
def running_keda(plane: ControlPlane, directory: Path) -> Iterator[None]:
    """Both programs, on loopback, and the API server told where it finds external metrics."""
    tools = toolchain.ensure(["keda-operator", "keda-adapter"])
    _write_certificate(directory)
    api = Api(plane.kubeconfig)
    api.apply(f"/api/v1/namespaces/{NAMESPACE}", _object("v1", "Namespace", {"name": NAMESPACE}))
    service_port, adapter_port = free_port(), free_port()
    environment: list[str | Path] = [
        "env",
        f"POD_NAMESPACE={NAMESPACE}",
        f"KEDA_CLUSTER_OBJECT_NAMESPACE={NAMESPACE}",
        "WATCH_NAMESPACE=",
    ]
    operator: list[str | Path] = [
        *environment,
        tools.path("keda-operator"),
        f"--kubeconfig={plane.kubeconfig}",
        f"--cert-dir={directory}",
        f"--metrics-bind-address={LOOPBACK}:{free_port()}",
        f"--health-probe-bind-address={LOOPBACK}:{free_port()}",
        f"--metrics-service-bind-address={LOOPBACK}:{service_port}",
        "--enable-webhook-patching=false",
        "--enable-apiservice-patching=false",
    ]
    adapter: list[str | Path] = [
        *environment,
        f"KUBECONFIG={plane.kubeconfig}",
        tools.path("keda-adapter"),
        f"--bind-address={LOOPBACK}",
        f"--secure-port={adapter_port}",
        f"--cert-dir={directory}",
        f"--tls-cert-file={directory / 'tls.crt'}",
        f"--tls-private-key-file={directory / 'tls.key'}",
        *(f"--{what}-kubeconfig={plane.kubeconfig}" for what in ("authentication", "authorization", "lister")),
        f"--metrics-service-address=localhost:{service_port}",
        f"--port={free_port()}",
    ]
    with (
        running(operator, service_port, directory / "operator.log"),
        running(adapter, adapter_port, directory / "adapter.log"),
    ):
        _serve_external_metrics(api, adapter_port)
        yield


def _serve_external_metrics(api: Api, port: int) -> None:
    """The API server reaches the adapter through a Service that stands for a name outside the cluster."""
    service = _object("v1", "Service", {"name": _SERVICE, "namespace": NAMESPACE})
    spec = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}
    api.apply(f"/api/v1/namespaces/{NAMESPACE}/services/{_SERVICE}", {**service, "spec": spec})
    name = "v1beta1.external.metrics.k8s.io"
    registration = {
        "group": "external.metrics.k8s.io",
        "version": "v1beta1",
        "service": {"name": _SERVICE, "namespace": NAMESPACE, "port": port},
        "insecureSkipTLSVerify": True,
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
    }
    api.apply(
        f"/apis/apiregistration.k8s.io/v1/apiservices/{name}",
        {**_object("apiregistration.k8s.io/v1", "APIService", {"name": name}), "spec": registration},
    )


def _object(api_version: str, kind: str, metadata: Object) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def _write_certificate(directory: Path) -> None:
    """ca.crt, tls.crt and tls.key: one certificate that both ends show and trust."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    names = [x509.DNSName("localhost"), x509.IPAddress(IPv4Address(LOOPBACK))]
    usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    for file in ("ca.crt", "tls.crt"):
        (directory / file).write_bytes(pem)
    (directory / "tls.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
