"""The part of AWS that a stack is in: China and GovCloud have names of their own in every ARN."""

import pulumi

from components.lookups.aws import connect


def arn(service_and_rest: str) -> str:
    """An ARN in the partition of the stack's region, from what follows it, as in iam::aws:policy/NAME."""
    return f"arn:{connect(pulumi.Config('aws').get('region')).partition}:{service_and_rest}"
