"""Which manifest is the one that was asked for."""

from containers.model_artifact.compilation import tools
from containers.model_artifact.description import Description
from containers.model_artifact.manifest import Manifest
from neuron.differences import differences


def mismatch(manifest: Manifest, description: Description) -> str | None:
    """Why the manifest is of another artifact, or from another compiler than this image has; None if it is neither."""
    others = differences(description.inputs, manifest.inputs)
    if others:
        return f"its manifest is of other inputs ({'; '.join(others)})"
    if manifest.key != description.key:
        return f"its manifest is of key {manifest.key}"
    stale = differences(tools(), manifest.tools)
    return f"its manifest is stale, this image has other tools ({'; '.join(stale)})" if stale else None
