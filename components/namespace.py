"""A namespace for model servers, with what they share: the Hugging Face token and the claim on the model cache."""

import pulumi
import pulumi_kubernetes as kubernetes

from components.hf_token import TOKEN_SECRET_KEY
from components.model_cache import ModelCache

# What no server needs is refused: privileged containers, the host's namespaces and paths. The next stricter standard
# asks for a user that is not root, which the Neuron images are not made for.
_POD_SECURITY = {"pod-security.kubernetes.io/enforce": "baseline"}


class Namespace(pulumi.ComponentResource):
    """`name` of the namespace; `token_secret` names the token's Secret and `cache_claim` the claim on the model cache.

    These, and `cache`, are None where the stack has no token or no cache.
    """

    name: pulumi.Output[str]
    cache: ModelCache | None
    token_secret: pulumi.Output[str] | None
    cache_claim: pulumi.Output[str] | None

    def __init__(
        self,
        name: str,
        provider: kubernetes.Provider,
        token: pulumi.Output[str] | None,
        cache: ModelCache | None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register the namespace and, for a stack with a token, the Secret: the only place where the token stands."""
        super().__init__("neuron-serving:index:Namespace", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self, provider=provider)
        namespace = kubernetes.core.v1.Namespace(name, metadata={"name": name, "labels": _POD_SECURITY}, opts=child)
        self.name = namespace.metadata["name"]
        self.token_secret = None
        self.cache = cache
        self.cache_claim = cache.claim(name, self.name) if cache else None
        if token is not None:
            secret = kubernetes.core.v1.Secret(
                f"{name}-hf-token",
                metadata={"namespace": self.name},
                string_data={TOKEN_SECRET_KEY: token},
                opts=child,
            )
            self.token_secret = secret.metadata["name"]
        self.register_outputs({"name": self.name})
