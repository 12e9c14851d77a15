"""What scales model servers, and between which bounds."""

from typing import Literal

from pydantic import Field

from components.addresses import PROMETHEUS_URL
from components.settings.shapes import CronTime, HttpUrl, Section, TimeZone


class AutoscalerSettings(Section):
    """The one provider of external metrics that a cluster may have; both would claim the same API.

    `install` is false where the cluster has it already. `prometheusUrl` is where KEDA asks, or the adapter.
    """

    kind: Literal["keda", "prometheus-adapter"] = "keda"
    install: bool = True
    prometheus_url: HttpUrl = PROMETHEUS_URL


class ScheduleSettings(Section):
    """At least this many replicas from `start` to `end`, which are cron expressions such as 0 8 * * 1-5."""

    start: CronTime
    end: CronTime
    time_zone: TimeZone = "Etc/UTC"
    replicas: int = Field(ge=1)


class AutoscalingSettings(Section):
    """How far a model server scales from its `replicas`, which are then the fewest; the rest is derived.

    It scales on its queue, on requests being served, and on the time to first token (`firstTokenSloSeconds`).
    """

    max_replicas: int = Field(ge=1)
    schedule: tuple[ScheduleSettings, ...] = Field(default=(), strict=False)
