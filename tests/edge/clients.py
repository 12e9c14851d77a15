"""Clients for an edge on loopback: many at once, each with one request."""

import asyncio
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import aiohttp
from yarl import URL

# As many tokens as the measured system answered with.
USUAL_TOKENS = 50
USUAL: Mapping[str, object] = {"prompt": "hello", "max_tokens": USUAL_TOKENS}
_LIMIT_SECONDS = 120


@dataclass(frozen=True)
class Answer:
    """What one request got, and when: its start and end, seconds of one clock."""

    status: int
    started: float
    ended: float
    headers: Mapping[str, str]
    body: bytes

    @property
    def seconds(self) -> float:
        """The latency."""
        return self.ended - self.started


def statuses(answers: Sequence[Answer]) -> dict[int, int]:
    """How many answers had each status."""
    return dict(Counter(answer.status for answer in answers))


def p99(values: Iterable[float]) -> float:
    """The value that one in a hundred exceeds."""
    ordered = sorted(values)
    return ordered[max(0, len(ordered) * 99 // 100 - 1)]


def answers_meanwhile(answers: Sequence[Answer]) -> list[int]:
    """For each answer, how many of the others came between its start and its end.

    A latency in a unit that a busy machine does not stretch: what stops one request there stops the others too.
    """
    ends = sorted(answer.ended for answer in answers)
    return [bisect_left(ends, answer.ended) - bisect_left(ends, answer.started) for answer in answers]


@dataclass(frozen=True)
class Request:
    """What is sent; the path as it stands: nothing is normalised on this side."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: Mapping[str, object] | None = None


def completion(url: str, headers: Mapping[str, str], body: Mapping[str, object]) -> Request:
    """A request for a completion."""
    return Request("POST", f"{url}/v1/completions", headers, body)


def send(requests: Sequence[Request]) -> list[Answer]:
    """The answers to these requests, all sent at once."""
    return asyncio.run(_all(requests))


def get(url: str, headers: Mapping[str, str] | None = None) -> Answer:
    """The answer to one GET."""
    return send([Request("GET", url, headers or {})])[0]


def complete(url: str, headers: Mapping[str, str], *bodies: Mapping[str, object]) -> list[Answer]:
    """A completion for each body, all started at once."""
    return send([completion(url, headers, body) for body in bodies])


def keep_asking(url: str, headers: Mapping[str, str], clients: int, seconds: float) -> list[Answer]:
    """Completions from `clients` that ask again as soon as they have an answer, or a refusal and a rest, for a time.

    Without each client's first one, whose time is mostly that of 256 clients who connect at once.
    """
    return asyncio.run(_keep_asking(url, headers, clients, seconds))


async def _all(requests: Sequence[Request]) -> list[Answer]:
    async with _session() as session:
        return list(await asyncio.gather(*(_send(session, request) for request in requests)))


async def _keep_asking(url: str, headers: Mapping[str, str], clients: int, seconds: float) -> list[Answer]:
    request = completion(url, headers, USUAL)
    deadline = time.monotonic() + seconds
    async with _session() as session:
        loops = await asyncio.gather(*(_ask_until(session, request, deadline) for _ in range(clients)))
    return [answer for answers in loops for answer in answers[1:]]


async def _ask_until(session: aiohttp.ClientSession, request: Request, deadline: float) -> list[Answer]:
    answers = []
    while time.monotonic() < deadline:
        answers.append(await _send(session, request))
        if answers[-1].status == 429:
            await asyncio.sleep(1)
    return answers


def _session() -> aiohttp.ClientSession:
    timeout = aiohttp.ClientTimeout(total=_LIMIT_SECONDS)
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout)


async def _send(session: aiohttp.ClientSession, request: Request) -> Answer:
    started = time.monotonic()
    async with session.request(
        request.method, URL(request.url, encoded=True), headers=request.headers, json=request.body
    ) as response:
        body = await response.read()
        return Answer(response.status, started, time.monotonic(), dict(response.headers), body)
