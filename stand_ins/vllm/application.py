"""The HTTP interface over the engine: routes, key, refusals and streams as vLLM has them."""

import asyncio
import hmac
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field
from http import HTTPStatus

from aiohttp import web
from aiohttp.typedefs import Handler
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import ValidationError

from neuron.images import image_line
from stand_ins.vllm import answers
from stand_ins.vllm.engine import Engine, Timing
from stand_ins.vllm.metrics import Metrics, is_v1
from stand_ins.vllm.protocol import ChatRequest, CompletionRequest, RefusedError, Request
from stand_ins.vllm.sequence import Sequence

# A server that is told to end lets requests be, after this. Not 0, which aiohttp takes for no limit: connections that
# clients keep open then held it for minutes.
SHUTDOWN_SECONDS = 0.1


@dataclass(frozen=True)
class Settings:
    """The server: its image line, slots, timing and model. An answer ends after `answer_tokens` unless asked to ignore
    the end. With a key, everything under /v1 needs it, and nothing else does: vLLM's rule."""

    line: str = "v0-0.9.1"
    max_num_seqs: int = 4
    timing: Timing = field(default_factory=Timing)
    model: str = "TinyLlama/TinyLlama-1.1B-Chat-v1.0"
    max_model_len: int = 1024
    # (src) at concurrency 1, 84.7 tokens/s and 1.66 requests/s.
    answer_tokens: int = 51
    api_key: str | None = field(default=None, repr=False)


def application(settings: Settings) -> web.Application:
    """The server's routes."""
    return _Server(settings).application()


class _Server:
    def __init__(self, settings: Settings) -> None:
        line = image_line(settings.line)
        self._settings = settings
        self._has_nested_errors = is_v1(line)
        self._version = line.tag.partition("-")[0]
        self._metrics = Metrics(line, settings.model)
        self._engine = Engine(settings.max_num_seqs, settings.timing, self._metrics)

    def application(self) -> web.Application:
        application = web.Application(middlewares=[self._count, self._guard])
        application.add_routes(
            [
                web.get("/health", self._health),
                web.get("/version", self._report_version),
                web.get("/metrics", self._report_metrics),
                web.get("/v1/models", self._list_models),
                web.post("/v1/chat/completions", self._chat),
                web.post("/v1/completions", self._complete),
            ]
        )
        application.cleanup_ctx.append(self._run_engine)
        return application

    async def _run_engine(self, _: web.Application) -> AsyncIterator[None]:
        task = asyncio.create_task(self._engine.run())
        yield
        task.cancel()

    @web.middleware
    async def _count(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        resource = request.match_info.route.resource
        route = resource.canonical if resource else "none"
        try:
            response = await handler(request)
        except web.HTTPException as refusal:
            self._metrics.count_answer(route, request.method, refusal.status)
            raise
        self._metrics.count_answer(route, request.method, response.status)
        return response

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        key = self._settings.api_key
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if key and request.path.startswith("/v1") and not hmac.compare_digest(given.encode(), key.encode()):
            return web.json_response({"error": "Unauthorized"}, status=HTTPStatus.UNAUTHORIZED)
        return await handler(request)

    async def _health(self, _: web.Request) -> web.Response:
        return web.Response()

    async def _report_version(self, _: web.Request) -> web.Response:
        return web.json_response({"version": self._version})

    async def _report_metrics(self, _: web.Request) -> web.Response:
        self._engine.expose()
        return web.Response(body=self._metrics.render(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _list_models(self, _: web.Request) -> web.Response:
        model = {
            "id": self._settings.model,
            "object": "model",
            "owned_by": "vllm",
            "max_model_len": self._settings.max_model_len,
        }
        return web.json_response({"object": "list", "data": [model]})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        return await self._answer(request, ChatRequest)

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        return await self._answer(request, CompletionRequest)

    async def _answer(self, request: web.Request, kind: type[Request]) -> web.StreamResponse:
        try:
            asked = kind.model_validate_json(await request.read())
            sequence = self._sequence(asked)
        except ValidationError as fault:
            return self._refuse(HTTPStatus.BAD_REQUEST, str(fault))
        except RefusedError as fault:
            return self._refuse(fault.status, str(fault))
        answer = answers.Answer(self._settings.model, sequence, is_chat=kind is ChatRequest)
        if asked.stream:
            return await self._stream(request, answer, asked.wants_usage)
        async with aclosing(self._engine.new_tokens(sequence)) as news:
            async for _ in news:
                pass
        return web.json_response(answer.whole())

    async def _stream(self, request: web.Request, answer: answers.Answer, wants_usage: bool) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        await response.prepare(request)
        sent = 0
        async with aclosing(self._engine.new_tokens(answer.sequence)) as news:
            async for count in news:
                opening = answer.opening() if sent == 0 else b""
                await response.write(opening + answer.tokens(sent, count))
                sent += count
        await response.write((answer.usage() if wants_usage else b"") + answers.END_OF_STREAM)
        return response

    def _sequence(self, asked: Request) -> Sequence:
        """The request as the engine runs it, or why it is refused."""
        if asked.model not in (None, self._settings.model):
            raise RefusedError(HTTPStatus.NOT_FOUND, f"The model `{asked.model}` does not exist.")
        room = self._settings.max_model_len - asked.words
        most = room if asked.tokens_asked is None else asked.tokens_asked
        if most > room or room < 1:
            raise RefusedError(
                HTTPStatus.BAD_REQUEST,
                f"This model's maximum context length is {self._settings.max_model_len} tokens. However, you requested "
                f"{asked.words + most} tokens ({asked.words} in the prompt, {most} in the answer).",
            )
        if asked.ignore_eos or most <= self._settings.answer_tokens:
            return Sequence(asked.words, most, "length")
        return Sequence(asked.words, self._settings.answer_tokens, "stop")

    def _refuse(self, status: int, message: str) -> web.Response:
        return web.json_response(answers.error(status, message, nested=self._has_nested_errors), status=status)
