"""The model cache layer: where published models lie, and the claims by which pods of a namespace mount it."""

import pulumi
import pulumi_kubernetes as kubernetes
import pulumi_kubernetes.core.v1 as core

from components.settings.model_cache import ModelCacheSettings

# The capacity of a Mountpoint volume is ignored, but the API wants one.
_CAPACITY = "100Gi"
_CSI_DRIVER = "s3.csi.aws.com"


class ModelCache(pulumi.ComponentResource):
    """One cache for the stack. `claim()` makes it mountable in a namespace."""

    def __init__(
        self,
        name: str,
        settings: ModelCacheSettings,
        provider: kubernetes.Provider,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register the bucket, where the backend is S3; a directory of the nodes needs nothing."""
        super().__init__("neuron-serving:index:ModelCache", name, {}, opts)
        self._settings = settings
        self._child = pulumi.ResourceOptions(parent=self, provider=provider)
        self._bucket = _bucket(name, settings, self)
        self.register_outputs({"bucket": self._bucket})

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
        if self._bucket is None:
            return {"host_path": {"path": self._settings.path, "type": "DirectoryOrCreate"}}
        return {
            "mount_options": ["allow-other", f"region {self._settings.region}"],
            "csi": {
                "driver": _CSI_DRIVER,
                "volume_handle": handle,
                "volume_attributes": {"bucketName": self._bucket},
            },
        }


def _bucket(name: str, settings: ModelCacheSettings, parent: pulumi.Resource) -> pulumi.Output[str] | None:
    if settings.backend != "s3":
        return None
    # Imported here: pulumi_aws costs every run of a program about a second, also where nothing is on AWS.
    from components.model_bucket import model_bucket

    return model_bucket(name, settings, parent).bucket
