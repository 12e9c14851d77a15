"""A request in the engine."""

import asyncio
from collections.abc import AsyncIterator
from typing import Literal

FinishReason = Literal["stop", "length"]


class Sequence:
    """A request: what it needs, and how far it is. Times are those of the simulated clock, in seconds."""

    def __init__(self, prompt_tokens: int, output_tokens: int, finish_reason: FinishReason) -> None:
        self.prompt_tokens = prompt_tokens
        self.output_tokens = output_tokens
        self.finish_reason = finish_reason
        self.produced = 0
        self.arrived = self.admitted = self.first_token = self.last_token = 0.0
        self._news = asyncio.Event()

    @property
    def is_finished(self) -> bool:
        return self.produced >= self.output_tokens

    def produce(self, now: float) -> None:
        """One more token."""
        self.first_token = self.first_token or now
        self.last_token = now
        self.produced += 1
        self._news.set()

    async def new_tokens(self) -> AsyncIterator[int]:
        """How many tokens have come, whenever some have, until all are there."""
        taken = 0
        while taken < self.output_tokens:
            await self._news.wait()
            self._news.clear()
            new, taken = self.produced - taken, self.produced
            yield new
