"""Reads the running stack's configuration: the one place that knows how Pulumi hands it over."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pulumi
from pulumi.runtime import config as runtime_config
from pydantic import JsonValue, ValidationError
from pydantic_core import ErrorDetails

from components import api_keys
from components.checks import check
from components.cluster import kubeconfig_path
from components.edge_checks import check_api_keys
from components.faults import ConfigurationError, Fault
from components.fixes import fix_choice, fix_key, fix_value
from components.lookups.aws import AwsError, connect
from components.platform import NOTHING, Platform, look_up
from components.settings import Settings
from components.settings.cluster import ClusterSettings, CreatedCluster, ExistingCluster, KubeconfigCluster

HF_TOKEN_KEY = "hfToken"  # noqa: S105 - the name of a key, not a token
UNKNOWN_KEY = "an unknown key"
# What is no section of the stack file, but a secret of its own.
SECRET_KEYS = (HF_TOKEN_KEY, api_keys.API_KEYS_KEY)
CLUSTER_MODES = ("kubeconfig", "existing", "create", "stack")


def load_settings() -> Settings:
    """The running stack's settings; RunError (one line a fault, no traceback) where they are not good."""
    prefix = f"{pulumi.get_project()}:"
    configuration = {**runtime_config.get_config_env(), **runtime_config.CONFIG.get()}
    raw = {key.removeprefix(prefix): value for key, value in configuration.items() if key.startswith(prefix)}
    plain_text = {key for key in SECRET_KEYS if not runtime_config.is_config_secret(f"{prefix}{key}")}
    with _refusing():
        settings = parse_settings(raw, plain_text)
        _check_kubeconfig(settings.cluster)
        return settings


def load_platform(settings: Settings) -> Platform:
    """What AWS says about the running stack, where that is on EKS by itself; RunError as above."""
    if not isinstance(settings.cluster, CreatedCluster | ExistingCluster):
        return NOTHING
    with _refusing():
        return look_up(settings, connect(pulumi.Config("aws").get("region")))


@contextmanager
def _refusing() -> Iterator[None]:
    """Turn faults, and a missing answer of AWS, into what Pulumi shows without a traceback."""
    try:
        yield
    except ConfigurationError as error:
        count = len(error.faults)
        heading = f"{count} {'fault' if count == 1 else 'faults'} in the configuration of stack {pulumi.get_stack()}"
        raise pulumi.RunError(f"{heading}; nothing was changed\n{error}") from None
    except AwsError as error:
        heading = f"AWS gave no answer about stack {pulumi.get_stack()}; nothing was changed"
        raise pulumi.RunError(f"{heading}\n{error}") from None


def _check_kubeconfig(cluster: ClusterSettings) -> None:
    if isinstance(cluster, KubeconfigCluster) and not kubeconfig_path(cluster).is_file():
        fix = "write the cluster's kubeconfig there; for the stack local, `make up` does"
        raise ConfigurationError([Fault("cluster.kubeconfig", cluster.kubeconfig, "a file that exists", fix)])


def parse_settings(raw: Mapping[str, str], plain_text: Collection[str] = ()) -> Settings:
    """Parse configuration values (key without project: text, objects as JSON); ConfigurationError with every fault.

    `plain_text` names the keys that should be secrets and are not.
    """
    faults = _token_faults(raw, plain_text)
    if api_keys.API_KEYS_KEY in raw:
        is_secret = api_keys.API_KEYS_KEY not in plain_text
        faults += api_keys.faults(raw[api_keys.API_KEYS_KEY], is_secret=is_secret)
    sections = {key: _decode(value) for key, value in raw.items() if key not in SECRET_KEYS}
    settings, shape_faults = _parse_shape(sections)
    faults += shape_faults
    if settings is not None:
        faults += [fault for fault in check(settings) if not _is_about_a_repair(fault, shape_faults)]
        faults += [*_token_twice(raw, settings), *check_api_keys(settings, api_keys.API_KEYS_KEY in raw)]
    if faults or settings is None:
        raise ConfigurationError(faults)
    return settings


def _decode(value: str) -> JsonValue:
    try:
        decoded: JsonValue = json.loads(value)
    except json.JSONDecodeError:
        return value
    return decoded


def _parse_shape(sections: dict[str, JsonValue]) -> tuple[Settings | None, list[Fault]]:
    """Parse the shape; where it has faults, parse again without the faulty values, so that more faults can be found."""
    try:
        return Settings.model_validate(sections), []
    except ValidationError as error:
        details = error.errors()
    faults = [_to_fault(detail) for detail in details]
    remaining = json.loads(json.dumps(sections))
    # From the end, so that dropping an entry of a list does not move the others.
    for detail in reversed(details):
        _repair(remaining, detail)
    try:
        return Settings.model_validate(remaining), faults
    except ValidationError:
        return None, faults


def _repair(sections: Any, detail: ErrorDetails) -> None:
    """Drop an unknown key or an entry of a list; put an allowed value where one is missing or not allowed."""
    *way, last = _steps(detail["loc"])
    for step in way:
        sections = sections[step]
    if detail["type"] == "extra_forbidden" or isinstance(last, int):
        del sections[last]
        return
    sections[last] = _placeholder(_schema(detail["loc"]))


def _placeholder(schema: Any) -> JsonValue:
    """A value of the schema; None, which the shape refuses again, where a whole section would have to be made up."""
    if "examples" in schema:
        example: JsonValue = schema["examples"][0]
        return example
    if "enum" in schema:
        first: JsonValue = schema["enum"][0]
        return first
    by_type: dict[str, JsonValue] = {
        "integer": schema.get("minimum", 1),
        "number": 1,
        "string": "placeholder",
        "boolean": False,
    }
    return by_type.get(schema.get("type"), schema.get("const"))


def _to_fault(detail: ErrorDetails) -> Fault:
    path = _path(_steps(detail["loc"]))
    if detail["type"] == "extra_forbidden":
        known = _known_keys(detail["loc"])
        return Fault(path, UNKNOWN_KEY, ", ".join(known), fix_key(detail["loc"][-1], known))
    if detail["type"] == "missing":
        return Fault(path, "nothing", "a value: the key is required", "set it")
    if detail["type"] == "union_tag_not_found":
        return Fault(f"{path}.mode", "nothing", ", ".join(CLUSTER_MODES), "set it")
    if detail["type"] == "union_tag_invalid":
        tag = detail["ctx"]["tag"]
        return Fault(f"{path}.mode", json.dumps(tag), ", ".join(CLUSTER_MODES), fix_choice(tag, CLUSTER_MODES))
    return Fault(path, _found(detail["input"]), _allowed(detail), fix_value(detail))


def _found(value: object) -> str:
    """A value for a message: scalars as they are, the rest by its kind alone."""
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    return json.dumps(value)


def _allowed(detail: ErrorDetails) -> str:
    if detail["type"] == "model_type":
        return f"a mapping with the keys {', '.join(_known_keys((*detail['loc'], '')))}"
    if detail["type"] == "model_attributes_type":
        return f"a mapping with a mode: {', '.join(CLUSTER_MODES)}"
    if detail["type"] == "greater_than_equal":
        return f"{detail['ctx']['ge']} or more"
    return detail["msg"].removeprefix("Input should be ").removeprefix("String should ")


def _path(location: Sequence[int | str]) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)
    return text.removeprefix(".")


def _steps(location: Sequence[int | str]) -> tuple[int | str, ...]:
    """The way inside the stack file: pydantic's, without the cluster's mode that it names after `cluster`."""
    if location[0] == "cluster" and len(location) > 1:
        return (location[0], *location[2:])
    return tuple(location)


def _known_keys(location: Sequence[int | str]) -> list[str]:
    """The keys that the section at this location has, from the schema."""
    return list(_schema(location[:-1])["properties"])


def _schema(location: Sequence[int | str]) -> Any:
    """The JSON schema of the value at this location."""
    root: Any = Settings.model_json_schema(by_alias=True)
    schema = root
    for step in location:
        schema = _below(schema, step)
        schema = schema["anyOf"][0] if "anyOf" in schema else schema
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    return schema


def _below(schema: Any, step: int | str) -> Any:
    if isinstance(step, int):
        return schema["items"]
    if "discriminator" in schema:
        return {"$ref": schema["discriminator"]["mapping"][step]}
    return schema["properties"][step]


def _is_about_a_repair(fault: Fault, shape_faults: Sequence[Fault]) -> bool:
    """A fault about a value that was put in only to look further is not the user's."""
    repaired = [one.path for one in shape_faults if one.found != UNKNOWN_KEY]
    return any(path.startswith(fault.path) or fault.path.startswith(path) for path in repaired)


def _token_faults(raw: Mapping[str, str], plain_text: Collection[str]) -> list[Fault]:
    if HF_TOKEN_KEY not in raw or HF_TOKEN_KEY not in plain_text:
        return []
    fix = f"pulumi config set --secret {HF_TOKEN_KEY}, and revoke the token that was written in clear"
    return [Fault(HF_TOKEN_KEY, "a value in plain text", "a secret", fix)]


def _token_twice(raw: Mapping[str, str], settings: Settings) -> list[Fault]:
    if HF_TOKEN_KEY not in raw:
        return []
    return [
        Fault(
            f"serving[{index}].{'hfTokenSecret' if one.hf_token_secret else 'hfTokenSecretArn'}",
            f"{one.hf_token_secret or one.hf_token_secret_arn} beside {HF_TOKEN_KEY}",
            "one of the two",
            "drop one",
        )
        for index, one in enumerate(settings.serving)
        if one.hf_token_secret is not None or one.hf_token_secret_arn is not None
    ]


def hf_token() -> pulumi.Output[str] | None:
    """The stack's Hugging Face token, a secret; None if none is set."""
    return pulumi.Config().get_secret(HF_TOKEN_KEY)
