"""The shape of a stack file, as pydantic models, a layer a file. What its values mean together is in checks.py."""

from pydantic import Field

from components.settings.accelerator import AcceleratorSettings
from components.settings.autoscaling import AutoscalerSettings
from components.settings.charts import ChartsSettings
from components.settings.cluster import ClusterSettings
from components.settings.edge import EdgeSettings
from components.settings.model_cache import ModelCacheSettings
from components.settings.node_groups import NodeGroupSettings, QuotasSettings
from components.settings.observability import ObservabilitySettings
from components.settings.serving import ServingSettings
from components.settings.shapes import Section


class Settings(Section):
    """A whole stack file.

    `quotas` declares the account's vCPU quotas; a stack that needs more at its largest is refused here,
    before AWS refuses its nodes.
    """

    cluster: ClusterSettings
    node_groups: tuple[NodeGroupSettings, ...] = Field(strict=False)
    serving: tuple[ServingSettings, ...] = Field(default=(), strict=False)
    model_cache: ModelCacheSettings | None = None
    accelerator: AcceleratorSettings | None = None
    edge: EdgeSettings | None = None
    observability: ObservabilitySettings | None = None
    autoscaler: AutoscalerSettings | None = None
    charts: ChartsSettings = ChartsSettings()
    quotas: QuotasSettings = QuotasSettings()

    def node_group(self, name: str) -> NodeGroupSettings | None:
        """The node group of that name, None if the stack file has none."""
        return next((group for group in self.node_groups if group.name == name), None)

    @property
    def existing_node_groups(self) -> tuple[NodeGroupSettings, ...]:
        """The node groups that others made."""
        return tuple(group for group in self.node_groups if group.create is None)
