"""The engine's loop: a queue, `max_num_seqs` slots, and one step at a time on one device.

Each step either prefills one waiting request, while all others wait, or decodes one token for every running one. That
is how vLLM without chunked prefill works, and why latency and throughput under load follow from two durations.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from stand_ins.vllm.metrics import Metrics
from stand_ins.vllm.sequence import Sequence

# (src) prefill takes 48.96 ms whatever the prompt's length, a decode step 9.21 ms whatever the number of sequences.
PREFILL_SECONDS = 0.049
INTER_TOKEN_SECONDS = 0.00921


@dataclass(frozen=True)
class Timing:
    """Durations of the steps, in seconds of the simulated server; it runs `time_factor` times as fast."""

    time_to_first_token_seconds: float = PREFILL_SECONDS
    inter_token_seconds: float = INTER_TOKEN_SECONDS
    time_factor: float = 1.0


class Engine:
    """Runs sequences, oldest first, at most `max_num_seqs` at a time. The queue has no bound, as vLLM's has none."""

    def __init__(self, max_num_seqs: int, timing: Timing, metrics: Metrics) -> None:
        self._max_num_seqs = max_num_seqs
        self._timing = timing
        self._metrics = metrics
        self._waiting: deque[Sequence] = deque()
        self._running: list[Sequence] = []
        self._arrival = asyncio.Event()
        self._due = 0.0

    async def new_tokens(self, sequence: Sequence) -> AsyncGenerator[int, None]:
        """Run a request: how many tokens are new, whenever some are. To close the iterator is to abort the request."""
        sequence.arrived = self._now()
        self._waiting.append(sequence)
        self._arrival.set()
        try:
            async for count in sequence.new_tokens():
                yield count
        finally:
            self._release(sequence)

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            if not self._waiting and not self._running:
                self._arrival.clear()
                await self._arrival.wait()
                # Due times follow each other, so that a late wake-up costs no throughput; idling starts them anew.
                self._due = asyncio.get_running_loop().time()
            if self._waiting and len(self._running) < self._max_num_seqs:
                await self._prefill(self._waiting.popleft())
            else:
                await self._decode()

    def expose(self) -> None:
        """Bring the gauges up to date."""
        self._metrics.set_load(len(self._running), len(self._waiting), self._max_num_seqs)

    async def _prefill(self, sequence: Sequence) -> None:
        sequence.admitted = self._now()
        self._running.append(sequence)
        await self._spend(self._timing.time_to_first_token_seconds)
        if sequence in self._running:
            self._produce(sequence)

    async def _decode(self) -> None:
        await self._spend(self._timing.inter_token_seconds)
        for sequence in tuple(self._running):
            self._produce(sequence)

    def _produce(self, sequence: Sequence) -> None:
        previous, now = sequence.last_token, self._now()
        sequence.produce(now)
        self._metrics.count_token(sequence, previous)
        if sequence.is_finished:
            self._running.remove(sequence)
            self._metrics.count_end(sequence)

    def _release(self, sequence: Sequence) -> None:
        """An unfinished request gives up its place or its slot; a finished one has neither."""
        for place in (self._waiting, self._running):
            if sequence in place:
                place.remove(sequence)
                self._metrics.count_abort()

    async def _spend(self, seconds: float) -> None:
        self._due += seconds / self._timing.time_factor
        await asyncio.sleep(max(0.0, self._due - asyncio.get_running_loop().time()))

    def _now(self) -> float:
        return asyncio.get_running_loop().time() * self._timing.time_factor
