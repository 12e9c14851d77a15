"""Requests of vLLM's OpenAI-compatible interface, as far as clients of this project send them.

Fields that make no difference to timing, such as those of sampling, are taken and ignored.
"""

from abc import ABC, abstractmethod
from typing import Annotated, Literal

from pydantic import BaseModel, Field, PositiveInt, model_validator

# OpenAI's default for completions; chat has none and may fill the context.
_COMPLETION_TOKENS = 16


class RefusedError(Exception):
    """The server refuses a request; `status` is HTTP's."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class _TextPart(BaseModel):
    type: Literal["text"]
    text: str


class _Message(BaseModel):
    role: str
    content: str | list[_TextPart]

    @property
    def text(self) -> str:
        return self.content if isinstance(self.content, str) else " ".join(part.text for part in self.content)


class _StreamOptions(BaseModel):
    include_usage: bool = False


class Request(BaseModel, ABC):
    """What both kinds of request share."""

    model: str | None = None
    stream: bool = False
    stream_options: _StreamOptions | None = None
    ignore_eos: bool = False

    @model_validator(mode="after")
    def _options_belong_to_streams(self) -> "Request":
        if self.stream_options is not None and not self.stream:
            raise ValueError("Stream options can only be defined when `stream=True`.")
        return self

    @property
    def wants_usage(self) -> bool:
        return self.stream_options is not None and self.stream_options.include_usage

    @property
    @abstractmethod
    def words(self) -> int:
        """Words of the prompt: the stand-in's tokens."""

    @property
    @abstractmethod
    def tokens_asked(self) -> int | None:
        """The most tokens that the client wants; None for as many as fit."""


class ChatRequest(Request):
    """POST /v1/chat/completions."""

    messages: Annotated[list[_Message], Field(min_length=1)]
    max_tokens: PositiveInt | None = None
    max_completion_tokens: PositiveInt | None = None

    @property
    def words(self) -> int:
        return sum(len(message.text.split()) for message in self.messages)

    @property
    def tokens_asked(self) -> int | None:
        return self.max_completion_tokens or self.max_tokens


class CompletionRequest(Request):
    """POST /v1/completions; of the forms of a prompt, text alone."""

    prompt: str
    max_tokens: PositiveInt = _COMPLETION_TOKENS

    @property
    def words(self) -> int:
        return len(self.prompt.split())

    @property
    def tokens_asked(self) -> int | None:
        return self.max_tokens
