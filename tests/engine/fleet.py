"""Model servers that come and go with the ready pods of a Deployment, and clients that load them.

A simulated pod runs no container; its server is a stand-in for vLLM on a port of loopback that is fixed beforehand: the
Prometheus of a test has a target for each replica. A request goes to any server that runs, as a Service would send it.
"""

import asyncio
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

import aiohttp
from aiohttp import web

from stand_ins.vllm.application import SHUTDOWN_SECONDS, Settings, application
from tests.edge.programs import LOOPBACK

_FOLLOW_SECONDS = 0.5
_RETRY_SECONDS = 0.2
_PROMPT = {"prompt": "a few words", "max_tokens": 51}


class Fleet:
    """Up to as many servers as `ports`; `replicas` says how many run, `clients` how many requests are always on.

    Without `answers` none listens, whatever the pods say.
    """

    def __init__(self, settings: Settings, ports: Sequence[int], replicas: Callable[[], int]) -> None:
        self.clients = 0
        self.answers = True
        self._settings = settings
        self._ports = ports
        self._replicas = replicas
        self._runners: list[web.AppRunner] = []
        self._stop = threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Follow the replicas and keep the clients busy, in a thread of its own."""
        thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    async def _run(self) -> None:
        async with aiohttp.ClientSession() as session:
            tasks: list[asyncio.Task[None]] = []
            while not self._stop.is_set():
                replicas = await asyncio.to_thread(self._replicas)
                await self._follow(replicas if self.answers else 0)
                while len(tasks) < self.clients:
                    tasks.append(asyncio.create_task(self._client(session)))
                while len(tasks) > self.clients:
                    tasks.pop().cancel()
                await asyncio.sleep(_FOLLOW_SECONDS)
            for task in tasks:
                task.cancel()
            await self._follow(0)

    async def _follow(self, replicas: int) -> None:
        while len(self._runners) > replicas:
            await self._runners.pop().cleanup()
        while len(self._runners) < min(replicas, len(self._ports)):
            runner = web.AppRunner(
                application(self._settings),
                access_log=None,
                shutdown_timeout=SHUTDOWN_SECONDS,
                handler_cancellation=True,
            )
            await runner.setup()
            await web.TCPSite(runner, LOOPBACK, self._ports[len(self._runners)]).start()
            self._runners.append(runner)

    async def _client(self, session: aiohttp.ClientSession) -> None:
        while True:
            with suppress(aiohttp.ClientError):
                await self._request(session)
                continue
            await asyncio.sleep(_RETRY_SECONDS)

    async def _request(self, session: aiohttp.ClientSession) -> None:
        port = random.choice(self._ports[: max(len(self._runners), 1)])  # noqa: S311 - no secret
        body = {"model": self._settings.model, **_PROMPT}
        async with session.post(f"http://{LOOPBACK}:{port}/v1/completions", json=body) as response:
            response.raise_for_status()
            await response.read()
