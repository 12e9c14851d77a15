"""What scales model servers, and between which bounds."""

from typing import Literal

from pydantic import Field

from components.addresses import PROMETHEUS_URL
from components.settings.shapes import CronTime, HttpUrl, Section, TimeZone
from neuron.scaling import TIME_TO_FIRST_TOKEN_TARGET_SECONDS


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

    It scales on its queue, on requests being served, and on the 95th percentile of the time to first token.
    """

    max_replicas: int = Field(ge=1)
    time_to_first_token_seconds: float = Field(default=TIME_TO_FIRST_TOKEN_TARGET_SECONDS, gt=0)
    schedule: tuple[ScheduleSettings, ...] = Field(default=(), strict=False)
