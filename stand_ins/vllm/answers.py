"""Answers of vLLM's OpenAI-compatible interface: documents, and the events of a stream."""

import json
import time
import uuid
from dataclasses import dataclass, field

from stand_ins.vllm.sequence import Sequence

Document = dict[str, object]

_WORD = " token"
END_OF_STREAM = b"data: [DONE]\n\n"


def event(document: Document) -> bytes:
    """One event of a stream."""
    return f"data: {json.dumps(document, separators=(',', ':'))}\n\n".encode()


def error(status: int, message: str, *, nested: bool) -> Document:
    """The body of an error; `nested` as OpenAI has it and vLLM since 0.11, flat as before."""
    fields: Document = {"message": message, "type": "BadRequestError", "param": None, "code": status}
    return {"error": fields} if nested else {"object": "error", **fields}


@dataclass(frozen=True)
class Answer:
    """The answer to one request, to a chat or to a completion."""

    model: str
    sequence: Sequence
    is_chat: bool
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    created: int = field(default_factory=lambda: int(time.time()))

    def whole(self) -> Document:
        """The answer that comes when all is there."""
        text = _WORD * self.sequence.output_tokens
        content: Document = {"message": {"role": "assistant", "content": text}} if self.is_chat else {"text": text}
        choice = {"index": 0, **content, "finish_reason": self.sequence.finish_reason}
        return {**self._head(""), "choices": [choice], "usage": self._usage()}

    def opening(self) -> bytes:
        """What comes before the first token: in a chat an event with the role."""
        return self._chunk({"delta": {"role": "assistant", "content": ""}}, None) if self.is_chat else b""

    def tokens(self, sent: int, count: int) -> bytes:
        """Events of `count` tokens after the `sent` ones, an event a token; the last one says why it ends."""
        content: Document = {"delta": {"content": _WORD}} if self.is_chat else {"text": _WORD}
        last = self.sequence.output_tokens
        return b"".join(
            self._chunk(content, self.sequence.finish_reason if number == last else None)
            for number in range(sent + 1, sent + count + 1)
        )

    def usage(self) -> bytes:
        """The event of clients that ask for usage: tokens, and no choice."""
        return event({**self._head(".chunk"), "choices": [], "usage": self._usage()})

    def _chunk(self, content: Document, finish_reason: str | None) -> bytes:
        return event({**self._head(".chunk"), "choices": [{"index": 0, **content, "finish_reason": finish_reason}]})

    def _head(self, chunk: str) -> Document:
        prefix, kind = ("chatcmpl", f"chat.completion{chunk}") if self.is_chat else ("cmpl", "text_completion")
        return {"id": f"{prefix}-{self.id}", "object": kind, "created": self.created, "model": self.model}

    def _usage(self) -> Document:
        prompt, output = self.sequence.prompt_tokens, self.sequence.output_tokens
        return {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}
