"""Every stack file in stacks/ is good as it is."""

import json
from pathlib import Path

import pytest
import yaml

from components.configuration import parse_settings

STACKS = Path(__file__).parent.parent.parent / "stacks"
PREFIX = "neuron-serving:"


@pytest.mark.parametrize("path", sorted(STACKS.glob("Pulumi.*.yaml")), ids=lambda path: path.name)
def test_a_stack_file_has_no_fault(path: Path) -> None:
    values = yaml.safe_load(path.read_text())["config"]
    raw = {key.removeprefix(PREFIX): json.dumps(value) for key, value in values.items() if key.startswith(PREFIX)}
    parse_settings(raw)
