"""The tags of everything that a stack makes on AWS: by them it is found again, and told from what others made."""

import pulumi

from neuron.tags import STACK_TAG


def stack_tags(name: str | None = None) -> dict[str, str]:
    """The tags of a resource of the running stack; `name` is what the console shows."""
    return {STACK_TAG: pulumi.get_stack()} | ({"Name": f"{pulumi.get_stack()}-{name}"} if name else {})
