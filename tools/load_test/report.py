"""Results: one level from its answers, all levels as a table and as JSON."""

import json
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from tools.load_test.profiles import Level, Profile

_COLUMNS: Mapping[str, str] = {
    "requests_per_second": "req/s",
    "tokens_per_second": "tok/s",
    "mean_seconds": "mean s",
    "p50_seconds": "p50 s",
    "p95_seconds": "p95 s",
    "p99_seconds": "p99 s",
    "first_token_seconds": "TTFT s",
    "inter_token_seconds": "ITL s",
}


@dataclass(frozen=True)
class Answer:
    """One answered request, in seconds from its sending; or the `error` that came instead."""

    seconds: float = 0.0
    first_token_seconds: float = 0.0
    tokens: int = 0
    error: str | None = None


@dataclass(frozen=True)
class Measured:
    """One level as measured: its numbers over the answers alone, and how many requests had none, by reason."""

    level: Level
    requests: int
    seconds: float
    errors: Mapping[str, int]


def measured(concurrency: int, answers: Sequence[Answer], seconds: float) -> Measured:
    """The numbers of a level that took `seconds`."""
    good = [answer for answer in answers if answer.error is None]
    errors = Counter(answer.error for answer in answers if answer.error is not None)
    return Measured(_level(concurrency, good, seconds), len(answers), seconds, dict(errors))


def table(profile: Profile, results: Sequence[Measured]) -> str:
    """Each level as measured, and below it the source's; `-` where there is no number."""
    sources = {level.concurrency: level for level in profile.source}
    header = ["clients", "", *_COLUMNS.values(), "requests", "failed"]
    rows = [header]
    for result in results:
        level = result.level
        rows.append([str(level.concurrency), "here", *_cells(level), str(result.requests), _failures(result)])
        rows.append(["", "source", *_cells(sources[level.concurrency]), "", ""])
    widths = [max(len(row[index]) for row in rows) for index in range(len(header))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


def document(profile: Profile, url: str, model: str, results: Sequence[Measured]) -> str:
    """Everything, as JSON."""
    return json.dumps(
        {
            "profile": {key: value for key, value in asdict(profile).items() if key != "source"},
            "url": url,
            "model": model,
            "levels": [asdict(result) for result in results],
            "source": [asdict(level) for level in profile.source],
        },
        indent=2,
    )


def _level(concurrency: int, good: Sequence[Answer], seconds: float) -> Level:
    if not good:
        return Level(concurrency)
    times = [answer.seconds for answer in good]
    gaps = [(one.seconds - one.first_token_seconds) / (one.tokens - 1) for one in good if one.tokens > 1]
    return Level(
        concurrency,
        requests_per_second=len(good) / seconds,
        tokens_per_second=sum(answer.tokens for answer in good) / seconds,
        mean_seconds=statistics.fmean(times),
        p50_seconds=percentile(times, 50),
        p95_seconds=percentile(times, 95),
        p99_seconds=percentile(times, 99),
        first_token_seconds=statistics.fmean(answer.first_token_seconds for answer in good),
        inter_token_seconds=statistics.fmean(gaps) if gaps else None,
    )


def percentile(values: Sequence[float], percent: int) -> float:
    """By linear interpolation between the two nearest of the values."""
    if len(values) == 1:
        return values[0]
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


def _cells(level: Level) -> list[str]:
    numbers = [getattr(level, name) for name in _COLUMNS]
    return ["-" if number is None else f"{number:.4g}" for number in numbers]


def _failures(result: Measured) -> str:
    reasons = ", ".join(f"{count} x {reason}" for reason, count in sorted(result.errors.items()))
    return reasons or "0"
