"""The stand-in for vLLM: it streams, queues, counts and refuses as the real server does."""

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from neuron.images import IMAGE_LINES
from stand_ins.vllm.application import Settings
from stand_ins.vllm.engine import Timing
from stand_ins.vllm_server import running_server

MODEL = Settings().model
KEY = "a-key-of-this-test"
# The server's own time; only the test of throughput measures it.
FAST = Timing(time_factor=10)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running_server(Settings(timing=FAST)) as address:
        yield address


def chat(**changes: object) -> dict[str, object]:
    return {"model": MODEL, "messages": [{"role": "user", "content": "one two three"}], "max_tokens": 5} | changes


async def post(url: str, body: dict[str, object], path: str = "/v1/chat/completions", key: str = "") -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {key}"}
    async with aiohttp.ClientSession() as session, session.post(url + path, json=body, headers=headers) as answer:
        return answer.status, await answer.text()


async def get(url: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return answer.status, await answer.text()


async def read_metrics(url: str) -> dict[str, float]:
    """Samples by name; of histograms only counts and sums."""
    _, page = await get(f"{url}/metrics")
    families = text_string_to_metric_families(page)
    return {sample.name: sample.value for family in families for sample in family.samples if "le" not in sample.labels}


def test_an_answer_has_the_tokens_that_were_asked_for(url: str) -> None:
    status, text = asyncio.run(post(url, chat()))
    answer = json.loads(text)
    assert status == 200
    assert answer["usage"] == {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8}
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["choices"][0]["message"]["content"].split() == ["token"] * 5


def test_an_answer_ends_by_itself_unless_asked_not_to(url: str) -> None:
    for ignore, tokens, reason in ((False, 51, "stop"), (True, 60, "length")):
        _, text = asyncio.run(post(url, chat(max_tokens=60, ignore_eos=ignore)))
        answer = json.loads(text)
        assert (answer["usage"]["completion_tokens"], answer["choices"][0]["finish_reason"]) == (tokens, reason)


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
def test_a_stream_has_an_event_a_token_and_ends(url: str, path: str) -> None:
    body = chat(stream=True, stream_options={"include_usage": True}, prompt="one two three")
    _, text = asyncio.run(post(url, body, path))
    events = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    assert events.pop() == "[DONE]"
    chunks = [json.loads(event) for event in events]
    assert chunks.pop()["usage"]["completion_tokens"] == 5
    opening = path == "/v1/chat/completions"
    assert len(chunks) == 5 + opening
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks][-2:] == [None, "length"]


@pytest.mark.parametrize(
    ("changes", "status", "part"),
    [
        ({"model": "another"}, 404, "`another` does not exist"),
        ({"messages": []}, 400, "messages"),
        ({"max_tokens": 0}, 400, "max_tokens"),
        ({"max_tokens": 1022}, 400, "maximum context length is 1024"),
        ({"stream_options": {"include_usage": True}}, 400, "Stream options"),
    ],
)
def test_what_vllm_refuses_is_refused(url: str, changes: dict[str, object], status: int, part: str) -> None:
    answer = asyncio.run(post(url, chat(**changes)))
    assert answer[0] == status
    assert part in json.loads(answer[1])["message"]


def test_a_key_guards_what_is_under_v1_and_nothing_else() -> None:
    with running_server(Settings(timing=FAST, api_key=KEY)) as url:
        assert asyncio.run(post(url, chat()))[0] == 401
        assert asyncio.run(post(url, chat(), key="wrong"))[0] == 401
        assert asyncio.run(post(url, chat(), key=KEY))[0] == 200
        assert asyncio.run(get(f"{url}/health"))[0] == 200
        assert asyncio.run(get(f"{url}/metrics"))[0] == 200


@pytest.mark.parametrize("line", IMAGE_LINES)
def test_metrics_have_the_names_of_the_image_line(line: str) -> None:
    names = IMAGE_LINES[line].metrics
    with running_server(Settings(line=line, timing=FAST)) as url:
        asyncio.run(post(url, chat()))
        metrics = asyncio.run(read_metrics(url))
    per_token = {name for name in metrics if name.removesuffix("_count") in _per_token_names()}
    assert per_token == {f"{names.per_token_seconds}_count"}
    assert metrics[f"{names.per_token_seconds}_count"] == 4
    assert metrics["vllm:time_to_first_token_seconds_count"] == 1
    assert metrics["vllm:generation_tokens_total"] == 5
    assert ("vllm:gpu_cache_usage_perc" in metrics) == (names.cache_usage is None)
    assert ("vllm:kv_cache_usage_perc" in metrics) == (names.cache_usage is not None)


def _per_token_names() -> set[str]:
    return {line.metrics.per_token_seconds for line in IMAGE_LINES.values()}


def test_requests_beyond_the_slots_wait_and_a_client_that_leaves_frees_its_place() -> None:
    async def scenario(url: str) -> None:
        clients = [asyncio.create_task(post(url, chat(max_tokens=900, ignore_eos=True))) for _ in range(6)]
        await _wait_for_load(url, running=4, waiting=2)
        for client in clients:
            client.cancel()
        await _wait_for_load(url, running=0, waiting=0)

    with running_server(Settings()) as url:
        asyncio.run(scenario(url))
        assert asyncio.run(read_metrics(url))["vllm:request_success_total"] == 6, "all of them aborted"


def test_a_server_that_is_ended_lets_requests_and_open_connections_be() -> None:
    async def scenario(server: ExitStack, url: str) -> float:
        async with aiohttp.ClientSession() as session:
            async with session.get(f"{url}/health"):
                pass
            asking = asyncio.create_task(post(url, chat(max_tokens=900, ignore_eos=True)))
            await _wait_for_load(url, running=1, waiting=0)
            started = time.monotonic()
            await asyncio.to_thread(server.close)
            seconds = time.monotonic() - started
            with pytest.raises(aiohttp.ClientError):
                await asking
            return seconds

    with ExitStack() as server:
        address = server.enter_context(running_server(Settings(timing=Timing(time_factor=0.5))))
        assert asyncio.run(scenario(server, address)) < 5


async def _wait_for_load(url: str, running: int, waiting: int) -> None:
    async with asyncio.timeout(10):
        while True:
            metrics = await read_metrics(url)
            if (metrics["vllm:num_requests_running"], metrics["vllm:num_requests_waiting"]) == (running, waiting):
                return
            await asyncio.sleep(0.05)


def test_throughput_under_load_is_the_measured_one() -> None:
    """(src) 40 requests at concurrency 8 took 7.33 s, at concurrency 1 24.12 s; time factor 2."""
    factor = 2

    async def scenario(url: str, concurrency: int, requests: int) -> float:
        slots = asyncio.Semaphore(concurrency)

        async def one() -> None:
            async with slots:
                await post(url, chat(max_tokens=100))

        start = time.monotonic()
        await asyncio.gather(*(one() for _ in range(requests)))
        return requests / (time.monotonic() - start) / factor

    with running_server(Settings(timing=Timing(time_factor=factor))) as url:
        assert asyncio.run(scenario(url, concurrency=8, requests=40)) == pytest.approx(40 / 7.33, rel=0.3)
        assert asyncio.run(scenario(url, concurrency=1, requests=8)) == pytest.approx(1.66, rel=0.3)
