"""The Hugging Face token of programs that download: from a Secret, or from AWS Secrets Manager as a file.

The file comes by the Secrets Store CSI driver, whose AWS provider asks as the pod's service account (EKS Pod Identity).
It never becomes a Kubernetes Secret. Source: AWS Secrets Manager user guide, "Use AWS Secrets and Configuration
Provider CSI with Pod Identity for Amazon EKS".
"""

import json
from dataclasses import dataclass

import pulumi
import pulumi_kubernetes as kubernetes
import pulumi_kubernetes.core.v1 as core

from components.statements import Statement, allow

TOKEN_SECRET_KEY = "token"  # noqa: S105 - the name of a key, not a token
_VOLUME, _PATH, _FILE = "hf-token", "/hf-token", "token"
_CSI_DRIVER = "secrets-store.csi.k8s.io"


@dataclass(frozen=True)
class HfToken:
    """Where a pod finds the token: in this Secret, or by this SecretProviderClass; both None where it needs none."""

    secret: pulumi.Input[str] | None = None
    provider_class: pulumi.Input[str] | None = None

    def environment(self) -> list[core.EnvVarArgsDict]:
        """What huggingface_hub reads: the token, or the path of a file that holds it."""
        if self.secret is not None:
            reference: core.EnvVarSourceArgsDict = {"secret_key_ref": {"name": self.secret, "key": TOKEN_SECRET_KEY}}
            return [{"name": "HF_TOKEN", "value_from": reference}]
        return [{"name": "HF_TOKEN_PATH", "value": f"{_PATH}/{_FILE}"}] if self.provider_class is not None else []

    def volumes(self) -> list[core.VolumeArgsDict]:
        """The pod's volumes for the token."""
        if self.provider_class is None:
            return []
        source: core.CSIVolumeSourceArgsDict = {
            "driver": _CSI_DRIVER,
            "read_only": True,
            "volume_attributes": {"secretProviderClass": self.provider_class},
        }
        return [{"name": _VOLUME, "csi": source}]

    def mounts(self) -> list[core.VolumeMountArgsDict]:
        """Where a container that downloads has them."""
        return [{"name": _VOLUME, "mount_path": _PATH, "read_only": True}] if self.provider_class is not None else []


NO_TOKEN = HfToken()


def provider_class_spec(secret_arn: str) -> dict[str, object]:
    """The spec of the SecretProviderClass: the secret's whole value is the token."""
    region = secret_arn.split(":")[3]
    objects = [{"objectName": secret_arn, "objectAlias": _FILE}]
    # The provider reads YAML, which JSON is.
    parameters = {"region": region, "usePodIdentity": "true", "objects": json.dumps(objects)}
    return {"provider": "aws", "parameters": parameters}


def secret_statements(secret_arn: str) -> list[Statement]:
    """What pods that download must be allowed on AWS: to read this secret and no other."""
    actions = ["secretsmanager:GetSecretValue", "secretsmanager:DescribeSecret"]
    return [allow(actions, secret_arn)]


def token_from_secrets_manager(
    name: str, secret_arn: str, metadata: kubernetes.meta.v1.ObjectMetaArgsDict, opts: pulumi.ResourceOptions
) -> tuple[HfToken, pulumi.Resource]:
    """Register how pods get the secret as a file, and what they wait for.

    `metadata` has the namespace of the pods, `opts` are those of a resource in the cluster.
    """
    class_name = f"{name}-hf-token"
    provider_class = kubernetes.apiextensions.CustomResource(
        class_name,
        api_version="secrets-store.csi.x-k8s.io/v1",
        kind="SecretProviderClass",
        metadata={**metadata, "name": class_name},
        spec=provider_class_spec(secret_arn),
        opts=opts,
    )
    return HfToken(provider_class=class_name), provider_class
