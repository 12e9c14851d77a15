"""Where published models are kept."""

from typing import Literal

from components.settings.shapes import Section


class ModelCacheSettings(Section):
    """Where published models are kept: a directory of the nodes, or an S3 bucket through Mountpoint.

    `bucket` may be left out: vllm-models-cache-<account>. `retain` keeps the bucket when the stack is destroyed.
    """

    backend: Literal["hostpath", "s3"]
    path: str = "/var/lib/neuron-serving/models"
    bucket: str | None = None
    region: str | None = None
    cluster_name: str | None = None
    retain: bool = True
