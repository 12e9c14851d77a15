"""Asks a model server through LLMeter, bounded in count and in time."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import openai
from llmeter.endpoints.base import InvocationResponse
from llmeter.endpoints.openai import OpenAICompletionStreamEndpoint
from llmeter.runner import Runner

from tools.load_test.profiles import Profile
from tools.load_test.report import Answer, Measured, measured

# Far longer than the source's slowest answer under overload: what takes longer counts as failed.
REQUEST_SECONDS = 120.0
_CONNECT_SECONDS = 10.0
# In every vocabulary: about a token each.
_WORDS = ("the", "time", "of", "day", "and", "a", "good", "way", "to", "go")
_STATUS_MARK = "Error code: "


class LoadTestError(Exception):
    """There is nothing to measure. One line: what was asked, what came back, the smallest fix."""


class TimeLimitError(Exception):
    """The time of the test is over."""


@dataclass(frozen=True)
class Target:
    """A server; `base_url` ends in /v1."""

    base_url: str
    key: str
    model: str


def find_model(base_url: str, key: str) -> str:
    """The server's first model; LoadTestError where it cannot be reached or refuses."""
    client = openai.OpenAI(base_url=base_url, api_key=key, max_retries=0, timeout=_CONNECT_SECONDS)
    try:
        models = client.models.list().data
    except openai.OpenAIError as error:
        raise LoadTestError(f"{base_url}/models: {_explain(error)}") from None
    finally:
        client.close()
    if not models:
        raise LoadTestError(f"{base_url}/models: no model is served; check the URL")
    return str(models[0].id)


def measure(target: Target, profile: Profile, seconds: float, report: Callable[[str], None]) -> Iterator[Measured]:
    """Each level of a profile in turn. After `seconds` nothing more is sent; what was not sent counts as failed."""
    # LLMeter logs a traceback for each failed request, and behind a limit they fail by design.
    logging.getLogger("llmeter").setLevel(logging.CRITICAL)
    endpoint = _Endpoint(target, time.monotonic() + seconds)
    for level in profile.source:
        each = profile.requests_per_client(level.concurrency)
        report(f"{level.concurrency} clients, {each} requests each")
        # LLMeter waits this long for the next answer, whichever it is.
        runner = Runner(endpoint, timeout=REQUEST_SECONDS)
        result = asyncio.run(runner.run(payload=_payload(profile), clients=level.concurrency, n_requests=each))
        answers = [_answer(response) for response in result.responses]
        yield measured(level.concurrency, answers, result.total_test_time)


class _Endpoint(OpenAICompletionStreamEndpoint):  # type: ignore[misc] # its types are in its own environment
    """Refuses to send after a moment, and to read an answer that comes too slowly."""

    def __init__(self, target: Target, last_moment: float) -> None:
        super().__init__(
            target.model, base_url=target.base_url, api_key=target.key, max_retries=0, timeout=REQUEST_SECONDS
        )
        self._last_moment = last_moment

    def prepare_payload(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        if time.monotonic() > self._last_moment:
            raise TimeLimitError("time limit of the test")
        return dict(super().prepare_payload(payload))

    def process_raw_response(self, raw_response: Iterable[Any], start_t: float, response: InvocationResponse) -> None:
        super().process_raw_response(_in_time(raw_response), start_t, response)
        if response.response_text is None:
            response.error = "an empty answer"


def _in_time(chunks: Iterable[Any]) -> Iterator[Any]:
    last_moment = time.monotonic() + REQUEST_SECONDS
    for chunk in chunks:
        if time.monotonic() > last_moment:
            raise TimeLimitError("time limit of a request")
        yield chunk


def _payload(profile: Profile) -> Any:
    words = " ".join(_WORDS[index % len(_WORDS)] for index in range(profile.prompt_words))
    # vLLM's own parameter: the answer goes on to its length.
    more = {"extra_body": {"ignore_eos": True}} if profile.fixed_length else {}
    return _Endpoint.create_payload(words, max_tokens=profile.answer_tokens, **more)


def _answer(response: InvocationResponse) -> Answer:
    if response.error is not None:
        return Answer(error=_reason(response.error))
    return Answer(response.time_to_last_token, response.time_to_first_token, response.num_tokens_output or 0)


def _reason(error: str) -> str:
    """The status of an answer, else the error's first words: reasons are counted."""
    if error.startswith(_STATUS_MARK):
        return f"HTTP {error.removeprefix(_STATUS_MARK)[:3]}"
    return error.splitlines()[0][:60].rstrip(".")


def _explain(error: openai.OpenAIError) -> str:
    match error:
        case openai.APITimeoutError():
            return "no answer in time; check that the server is up and that the network lets you through"
        case openai.APIConnectionError():
            return f"no connection ({error.__cause__ or error}); check the URL's host and port"
        case openai.AuthenticationError():
            return "401, the key is not accepted; set LOAD_TEST_API_KEY"
        case openai.RateLimitError():
            return "429, the server takes no more requests even before the test; wait, or raise its limit"
        case openai.APIStatusError():
            return f"{error.status_code}, not what a server with the OpenAI interface says; check the URL"
    return "not what a server with the OpenAI interface says; check the URL"
