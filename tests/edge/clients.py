"""Clients for an edge on loopback: many at once, each with one request."""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import aiohttp
from yarl import URL

# As many tokens as the measured system answered with.
USUAL: Mapping[str, object] = {"prompt": "hello", "max_tokens": 50}
_LIMIT_SECONDS = 120


@dataclass(frozen=True)
class Answer:
    """What one request got, and when: seconds from its start."""

    status: int
    seconds: float
    headers: Mapping[str, str]
    body: bytes


def statuses(answers: Sequence[Answer]) -> dict[int, int]:
    """How many answers had each status."""
    return dict(Counter(answer.status for answer in answers))


def p99_seconds(answers: Sequence[Answer]) -> float:
    """The latency that one answer in a hundred exceeds."""
    return sorted(answer.seconds for answer in answers)[max(0, len(answers) * 99 // 100 - 1)]


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
        return Answer(response.status, time.monotonic() - started, dict(response.headers), body)
