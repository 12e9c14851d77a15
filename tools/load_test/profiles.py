"""What is asked, and what was measured when the source asked it. Both as tables.

Source: docs/measurements.md and the write-ups behind it: TinyLlama-1.1B, bf16, max_num_seqs 4, on one trn1.2xlarge.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Level:
    """What was measured at one number of concurrent clients; latencies in seconds, None where it was not measured."""

    concurrency: int
    requests_per_second: float | None = None
    tokens_per_second: float | None = None
    mean_seconds: float | None = None
    p50_seconds: float | None = None
    p95_seconds: float | None = None
    p99_seconds: float | None = None
    first_token_seconds: float | None = None
    inter_token_seconds: float | None = None


@dataclass(frozen=True)
class Profile:
    """A load: clients that ask again as soon as they are answered, `requests` in all at each level (at least).

    `fixed_length` makes answers as long as `answer_tokens`; without it a model may end before.
    """

    name: str
    prompt_words: int
    answer_tokens: int
    fixed_length: bool
    requests: int
    source: tuple[Level, ...]
    note: str

    def requests_per_client(self, concurrency: int) -> int:
        """How often each client asks; twice at least, so that a queue has time to form."""
        return max(math.ceil(self.requests / concurrency), 2)


_PROFILES = (
    Profile(
        name="concurrency",
        prompt_words=20,
        answer_tokens=100,
        fixed_length=False,
        requests=40,
        source=(
            Level(1, requests_per_second=1.66, mean_seconds=0.60, p95_seconds=0.84),
            Level(2, requests_per_second=3.00, mean_seconds=0.65, p95_seconds=0.97),
            Level(4, requests_per_second=5.70, mean_seconds=0.68, p95_seconds=1.14),
            Level(8, requests_per_second=5.46, mean_seconds=1.36, p95_seconds=1.99),
            Level(16, requests_per_second=6.23, mean_seconds=2.04, p95_seconds=3.43),
        ),
        note="short prompts, up to 100 tokens; answers ended after about 50",
    ),
    Profile(
        name="llmperf",
        prompt_words=256,
        answer_tokens=100,
        fixed_length=True,
        requests=50,
        source=(
            Level(
                5,
                tokens_per_second=336.6,
                mean_seconds=1.175,
                first_token_seconds=0.251,
                inter_token_seconds=0.01203,
            ),
        ),
        note="256 tokens in, 100 out, as llmperf had them on average; here a word counts as a token",
    ),
    Profile(
        name="overload",
        prompt_words=20,
        answer_tokens=20,
        fixed_length=True,
        requests=80,
        source=(
            Level(8, requests_per_second=10.81, p50_seconds=0.59, p95_seconds=1.43, p99_seconds=1.67),
            Level(32, requests_per_second=10.71, p50_seconds=2.83, p95_seconds=3.63, p99_seconds=3.76),
            Level(64, requests_per_second=10.69, p50_seconds=5.69, p95_seconds=6.61, p99_seconds=6.94),
            Level(128, requests_per_second=10.93, p50_seconds=9.31, p95_seconds=12.08, p99_seconds=12.50),
            Level(256, requests_per_second=10.94, p50_seconds=9.09, p95_seconds=17.35, p99_seconds=17.84),
        ),
        note="20 tokens fit the throughput; the source does not state its answers' length",
    ),
)

PROFILES: Mapping[str, Profile] = MappingProxyType({profile.name: profile for profile in _PROFILES})
