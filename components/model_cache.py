"""The model cache layer: where published models lie, and the claims by which pods of a namespace mount it."""

import pulumi
import pulumi_kubernetes as kubernetes
import pulumi_kubernetes.core.v1 as core

from components.settings.model_cache import ModelCacheSettings
from components.statements import Statement

# The capacity of a Mountpoint volume is ignored, but the API wants one.
_CAPACITY = "100Gi"
_CSI_DRIVER = "s3.csi.aws.com"


class ModelCache(pulumi.ComponentResource):
    """One cache for the stack. `claim()` makes it mountable in a namespace, `statements()` says what its pods need.

    `bucket` is the bucket's name, None where models lie on the nodes.
    """

    bucket: pulumi.Output[str] | None

    def __init__(
        self,
        name: str,
        settings: ModelCacheSettings,
        provider: kubernetes.Provider,
        s3_endpoint_id: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register the bucket, where the backend is S3; a directory of the nodes needs nothing.

        `s3_endpoint_id` is the VPC's endpoint, for settings that restrict it.
        """
        super().__init__("neuron-serving:index:ModelCache", name, {}, opts)
        self._settings = settings
        self._child = pulumi.ResourceOptions(parent=self, provider=provider)
        self.bucket = _bucket(name, settings, s3_endpoint_id, self)
        self.register_outputs({"bucket": self.bucket})

    def statements(self, *, publishes: bool) -> list[pulumi.Output[list[Statement]]]:
        """What pods that mount the cache must be allowed on AWS, to load models or to publish them."""
        if self.bucket is None:
            return []
        from components.model_bucket import access_statements

        return [self.bucket.apply(lambda bucket: access_statements(bucket, publishes=publishes))]

    def claim(self, namespace: str, in_namespace: pulumi.Input[str]) -> pulumi.Output[str]:
        """The name of a claim on the whole cache, for pods of the namespace. Its volume outlives the claim."""
        name = f"model-cache-{namespace}"
        volume = core.PersistentVolume(
            name,
            spec={
                "capacity": {"storage": _CAPACITY},
                "access_modes": ["ReadWriteMany"],
                "persistent_volume_reclaim_policy": "Retain",
                "storage_class_name": "",
                "claim_ref": {"namespace": in_namespace, "name": name},
                **self._source(name),
            },
            opts=self._child,
        )
        claim = core.PersistentVolumeClaim(
            name,
            metadata={"namespace": in_namespace, "name": name},
            spec={
                "access_modes": ["ReadWriteMany"],
                "storage_class_name": "",
                "volume_name": volume.metadata["name"],
                "resources": {"requests": {"storage": _CAPACITY}},
            },
            opts=self._child,
        )
        return claim.metadata["name"]

    def _source(self, handle: str) -> core.PersistentVolumeSpecArgsDict:
        """The volume's source. Mount options are Mountpoint's: neither overwrite nor delete is allowed."""
        if self.bucket is None:
            return {"host_path": {"path": self._settings.path, "type": "DirectoryOrCreate"}}
        return {
            "mount_options": ["allow-other"],
            "csi": {
                "driver": _CSI_DRIVER,
                "volume_handle": handle,
                # With the mounting pod's own role. The driver's would be one for the whole cluster, and has to be
                # there before the driver's pods start.
                "volume_attributes": {"bucketName": self.bucket, "authenticationSource": "pod"},
            },
        }


def _bucket(
    name: str, settings: ModelCacheSettings, s3_endpoint_id: pulumi.Input[str] | None, parent: pulumi.Resource
) -> pulumi.Output[str] | None:
    if settings.backend != "s3":
        return None
    # Imported here: pulumi_aws costs every run of a program about a second, also where nothing is on AWS.
    from components.model_bucket import model_bucket, restrict_endpoint

    bucket = model_bucket(name, settings, parent)
    if settings.restrict_endpoint and s3_endpoint_id is not None:
        restrict_endpoint(name, bucket, s3_endpoint_id, parent)
    return bucket
