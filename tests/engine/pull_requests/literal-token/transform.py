"""Adds a Hugging Face token to the server's variables, in clear (made up)."""

from typing import Any

import pulumi


def add_token(args: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult | None:
    """Change the Deployment as a pull request to its builder would."""
    if args.type_ != "kubernetes:apps/v1:Deployment":
        return None
    spec: Any = args.props["spec"]
    variable = {"name": "HF_TOKEN", "value": "hf_madeUpForThisTestMadeUpForThisTest1"}
    spec["template"]["spec"]["containers"][0]["env"].append(variable)
    return pulumi.ResourceTransformResult(args.props, args.opts)


pulumi.runtime.register_resource_transform(add_token)
