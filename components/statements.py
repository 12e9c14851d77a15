"""IAM policies: their statements, and the document around them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

Statement: TypeAlias = dict[str, object]
"""One statement of a policy, in IAM's own words."""


def allow(
    actions: str | Sequence[str],
    resources: str | Sequence[str] = "*",
    condition: Mapping[str, object] | None = None,
) -> Statement:
    """What is allowed on what, and when."""
    statement: Statement = {"Effect": "Allow", "Action": actions, "Resource": resources}
    return statement | ({"Condition": dict(condition)} if condition else {})


def deny_without_tls(service: str, resources: str | Sequence[str]) -> Statement:
    """Nobody does anything of a service with these over a connection that is not encrypted."""
    return {
        "Effect": "Deny",
        "Principal": "*",
        "Action": f"{service}:*",
        "Resource": resources,
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }


def policy_document(statements: Iterable[Mapping[str, object]]) -> str:
    """The JSON of a policy."""
    return json.dumps({"Version": "2012-10-17", "Statement": [dict(one) for one in statements]})
