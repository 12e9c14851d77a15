"""The plot: throughput and latency over the number of clients, beside the source's."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl

from tools.load_test.profiles import Level, Profile

mpl.use("svg")
from matplotlib import pyplot

_PANELS = (
    ("requests_per_second", "requests/s"),
    ("tokens_per_second", "tokens/s"),
    ("mean_seconds", "mean latency, s"),
    ("p95_seconds", "p95 latency, s"),
)


def save(profile: Profile, levels: Sequence[Level], path: Path) -> None:
    """Draw into an SVG file."""
    figure, axes = pyplot.subplots(2, 2, figsize=(9, 6), layout="constrained")
    figure.suptitle(f"{profile.name}: {profile.note}", fontsize=9)
    for axis, (name, label) in zip(axes.flat, _PANELS, strict=True):
        highest = 0.0
        for series, title, style in ((levels, "here", "o-"), (profile.source, "source", "s--")):
            points = {one.concurrency: getattr(one, name) for one in series if getattr(one, name) is not None}
            if points:
                axis.plot(list(points), list(points.values()), style, label=title)
                highest = max(highest, *points.values())
        axis.set(xlabel="clients", ylabel=label, ylim=(0, 1.1 * highest or 1))
        axis.set_xscale("log", base=2)
        axis.xaxis.set_major_formatter("{x:.0f}")
        axis.grid(alpha=0.3)
        if highest:
            axis.legend()
    figure.savefig(path)
    pyplot.close(figure)
