"""What stand-ins read from the kubeconfig of the control plane that plays EKS."""

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml


@dataclass(frozen=True)
class Access:
    """How the control plane is reached. `certificate_authority` is base64 of a PEM, the other two are PEM."""

    server: str
    certificate_authority: str
    client_certificate: str
    client_key: str


def read_access(kubeconfig: Path) -> Access:
    """The access of the current context; its user has a client certificate. OSError or KeyError where it has not."""
    document = yaml.safe_load(kubeconfig.read_text())
    context = _named(document["contexts"], document["current-context"])["context"]
    cluster = _named(document["clusters"], context["cluster"])["cluster"]
    user = _named(document["users"], context["user"])["user"]
    return Access(
        server=cluster["server"],
        certificate_authority=base64.b64encode(_content(cluster, "certificate-authority")).decode(),
        client_certificate=_content(user, "client-certificate").decode(),
        client_key=_content(user, "client-key").decode(),
    )


def eks_kubeconfig(cluster: str, server: str, authority: str, region: str) -> dict[str, Any]:
    """The kubeconfig that pulumi-eks gives: it asks the AWS CLI for a token, so the stand-in has to be on PATH."""
    command = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "aws",
        "args": ["--region", region, "eks", "get-token", "--cluster-name", cluster, "--output", "json"],
    }
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "kubernetes", "cluster": {"server": server, "certificate-authority-data": authority}}],
        "contexts": [{"name": "aws", "context": {"cluster": "kubernetes", "user": "aws"}}],
        "current-context": "aws",
        "users": [{"name": "aws", "user": {"exec": command}}],
    }


def _named(entries: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(entry for entry in entries if entry["name"] == name)


def _content(entry: dict[str, str], name: str) -> bytes:
    """What a kubeconfig has in a file or in itself."""
    return Path(entry[name]).read_bytes() if name in entry else base64.b64decode(entry[f"{name}-data"])
