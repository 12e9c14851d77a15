"""Which value keys a pinned chart knows: recorded by hand from its source, as charts are not downloaded in tests.

Helm ignores a key that no template reads, so a misspelt or renamed one would silently do nothing. Each file of
program/chart_values/ lists the keys of one chart, level by level, for the levels that this program sets anything in.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent / "program" / "chart_values"


@dataclass(frozen=True)
class ChartValues:
    """A chart's known keys. `levels` maps a dotted path ("" for the top) to all keys there.

    `free` maps paths below which anything may stand, such as labels that others choose, to the reason.
    """

    version: str
    levels: Mapping[str, frozenset[str]]
    free: Mapping[str, str]

    def unknown(self, values: Mapping[str, Any], path: str = "") -> Iterator[str]:
        """The dotted paths in `values` that the chart is not known to have."""
        known = self.levels.get(path)
        if known is None:
            yield f"{path}: a level that is not recorded"
            return
        for key, value in values.items():
            below = f"{path}.{key}".removeprefix(".")
            if key not in known:
                yield below
            elif isinstance(value, Mapping) and value and below not in self.free:
                yield from self.unknown(value, below)


def chart_values(key: str) -> ChartValues:
    """The recorded keys of a chart of components.charts.CHARTS."""
    record = yaml.safe_load((FOLDER / f"{key}.yaml").read_text())
    levels = {path: frozenset(keys) for path, keys in record["levels"].items()}
    return ChartValues(record["version"], levels, record.get("free", {}))
