"""Where published models are kept."""

from typing import Literal

from components.settings.shapes import Section


class ModelCacheSettings(Section):
    """Where published models are kept: a directory of the nodes, or an S3 bucket through Mountpoint.

    `bucket` names the bucket; left out, Pulumi makes up a name. With `createBucket: false` it is one that exists, such
    as another stack's, or this one's from before it was destroyed. `retain` keeps a bucket made here when the stack is
    destroyed. `restrictEndpoint` limits the S3 endpoint of a VPC made here to the bucket and what nodes read from S3:
    nothing in the VPC reaches another bucket of the region any more.
    """

    backend: Literal["hostpath", "s3"]
    path: str = "/var/lib/neuron-serving/models"
    bucket: str | None = None
    create_bucket: bool = True
    retain: bool = True
    restrict_endpoint: bool = False
