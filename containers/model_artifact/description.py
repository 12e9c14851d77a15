"""What is to be published or loaded: the file that the serving component wrote."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from containers.model_artifact.errors import ArtifactError


@dataclass(frozen=True)
class Description:
    """One artifact, as neuron.artifact describes it. `inputs` are the values behind `key`, in clear.

    `rank_files` lie among the compiled graphs and hold each rank's weights; without any, servers read the model's own.
    """

    model: str
    revision: str
    key: str
    prefix: str
    artifacts_variable: str
    inputs: Mapping[str, object]
    rank_files: Sequence[str]


def read_description(path: Path) -> Description:
    """The description in a JSON file; ArtifactError if it is none."""
    try:
        values = json.loads(path.read_text())
        return Description(**{field.name: values[field.name] for field in fields(Description)})
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ArtifactError(f"{path} is not an artifact's description: {type(error).__name__}: {error}") from None
