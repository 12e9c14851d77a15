"""The keys that clients show at the edge: the stack's secret `apiKeys`, a JSON object from client to key."""

import json
import re
from collections.abc import Iterator, Mapping

import pulumi

from components.faults import Fault

API_KEYS_KEY = "apiKeys"
# 24 of the 64 characters that key generators use are 144 bits, which nobody guesses, from a hash neither.
MINIMUM_CHARACTERS = 24
# A key of a Secret, a user name of basic authentication and the value of a header.
_CLIENT = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_KEY = re.compile(rf"[!-~]{{{MINIMUM_CHARACTERS},}}")
_SET = f'pulumi config set --secret {API_KEYS_KEY} \'{{"team-a": "<key>"}}\''


def api_keys() -> pulumi.Output[dict[str, str]] | None:
    """The running stack's keys by client, a secret; None if none are set. They were checked before."""
    text = pulumi.Config().get_secret(API_KEYS_KEY)
    return text.apply(parse) if text is not None else None


def parse(text: str) -> dict[str, str]:
    """The keys by client; ValueError, without a key in it, for anything but an object of texts."""
    try:
        keys = json.loads(text)
    except json.JSONDecodeError:
        raise ValueError(f"{API_KEYS_KEY} is no JSON") from None
    if not isinstance(keys, dict) or not all(isinstance(key, str) for key in keys.values()):
        raise ValueError(f"{API_KEYS_KEY} is no object of texts")
    return keys


def faults(text: str, *, is_secret: bool) -> Iterator[Fault]:
    """What is wrong with the keys of a stack file; no fault quotes one."""
    if not is_secret:
        fix = f"{_SET}, with new keys: these were written in clear"
        yield Fault(API_KEYS_KEY, "a value in plain text", "a secret", fix)
    try:
        keys = parse(text)
    except ValueError:
        yield Fault(API_KEYS_KEY, "something else", "a JSON object from client to key", _SET)
        return
    yield from _faults(keys)


def _faults(keys: Mapping[str, str]) -> Iterator[Fault]:
    if not keys:
        yield Fault(API_KEYS_KEY, "an empty object", "at least one client", _SET)
    for client, key in keys.items():
        if _CLIENT.fullmatch(client) is None:
            allowed = "lower-case letters, digits and dashes, at most 63 of them"
            yield Fault(API_KEYS_KEY, f"a client {json.dumps(client)}", allowed, "rename the client")
        if _KEY.fullmatch(key) is None:
            allowed = f"{MINIMUM_CHARACTERS} or more visible characters without blanks"
            yield Fault(
                API_KEYS_KEY, f"a key of {len(key)} characters for {client}", allowed, "openssl rand -base64 24"
            )
    for client in _repeated(keys):
        yield Fault(API_KEYS_KEY, f"another client's key for {client}", "a key for each client", "make a new one")


def _repeated(keys: Mapping[str, str]) -> list[str]:
    clients = list(keys)
    return [client for index, client in enumerate(clients) if keys[client] in [keys[one] for one in clients[:index]]]
