"""A good stack file, and what tests do with one: change values and read what is said of them."""

import copy
import json
from collections.abc import Collection, Mapping
from typing import Any

import pytest

from components.configuration import parse_settings
from components.faults import ConfigurationError

MODEL: Mapping[str, Any] = {
    "id": "TinyLlama/TinyLlama-1.1B-Chat-v1.0",
    "revision": "fe8a4ea1ffedaf415f4da2f062534de366a451e6",
    "maxModelLen": 1024,
    "maxNumSeqs": 4,
    "tensorParallel": 2,
}
GOOD: Mapping[str, Any] = {
    "cluster": {"mode": "kubeconfig", "kubeconfig": "kubeconfig"},
    "nodeGroups": [{"name": "inferentia", "instanceType": "inf2.xlarge", "nodes": 2}],
    "serving": [
        {"name": "tinyllama", "imageLine": "nxdi-0.13", "nodeGroup": "inferentia", "replicas": 1, "model": MODEL}
    ],
}


def changed(changes: Mapping[str, Any], good: Mapping[str, Any] = GOOD) -> dict[str, Any]:
    """Good values with those at these paths (`serving.0.replicas`) set, or removed where the change is None."""
    values = copy.deepcopy(dict(good))
    for path, value in changes.items():
        *way, last = [int(step) if step.isdigit() else step for step in path.split(".")]
        section: Any = values
        for step in way:
            section = section[step]
        if value is None:
            del section[last]
        else:
            section[last] = value
    return values


def encoded(values: Mapping[str, Any]) -> dict[str, str]:
    """Values as Pulumi hands configuration over."""
    return {key: json.dumps(value) for key, value in values.items()}


def lines(changes: Mapping[str, Any], good: Mapping[str, Any] = GOOD, *, plain_text: Collection[str] = ()) -> list[str]:
    """The lines that a person reads for good values with these changes."""
    with pytest.raises(ConfigurationError) as failure:
        parse_settings(encoded(changed(changes, good)), plain_text)
    return str(failure.value).splitlines()
