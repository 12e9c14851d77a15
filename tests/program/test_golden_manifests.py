"""One golden manifest for each image line: what a reviewer sees change when a derivation changes.

`UPDATE_GOLDEN=1 pytest tests/program/test_golden_manifests.py` writes them anew; read the diff before committing it.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from neuron.images import IMAGE_LINES
from tests.program.conftest import Recorder

GOLDEN = Path(__file__).parent / "golden"
INSTANCE_TYPES = {"plugin-0.24": "trn2.3xlarge"}


def whole(value: Any) -> Any:
    """The value with 40.0 written as 40: on Pulumi's wire every number is a float."""
    if isinstance(value, dict):
        return {key: whole(each) for key, each in value.items()}
    if isinstance(value, list):
        return [whole(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


@pytest.mark.parametrize("line", IMAGE_LINES)
def test_the_deployment_of_a_line_is_the_golden_one(
    line: str, run_program: Callable[..., Recorder], local_stack: dict[str, Any]
) -> None:
    local_stack["nodeGroups"][0]["instanceType"] = INSTANCE_TYPES.get(line, "inf2.xlarge")
    local_stack["serving"][0] |= {"imageLine": line, "neuronConfig": {"enable_bucketing": False}}
    (deployment,) = run_program(local_stack).of_type(":Deployment")
    rendered = yaml.safe_dump(whole(deployment.inputs["spec"]), sort_keys=True, width=120)
    golden = GOLDEN / f"deployment-{line}.yaml"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(rendered)
    assert rendered == golden.read_text()
