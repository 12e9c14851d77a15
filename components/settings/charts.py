"""Where Helm charts come from."""

from pydantic import Field

from components.settings.shapes import OciUrl, Section


class ChartsSettings(Section):
    """Where charts come from instead of their own repositories: a folder of charts, or an OCI mirror."""

    folder: str | None = Field(default=None, min_length=1)
    mirror: OciUrl | None = None
