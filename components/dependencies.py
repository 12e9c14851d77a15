"""What a layer waits for, handed on to what it registers."""

import pulumi


def needed(opts: pulumi.ResourceOptions | None) -> pulumi.ResourceOptions:
    """The dependencies in a component's options, and nothing else of them: Pulumi keeps them from its children."""
    return pulumi.ResourceOptions(depends_on=opts.depends_on if opts else None)
