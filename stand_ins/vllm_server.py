"""A stand-in for a vLLM server on a loopback port: `python -m stand_ins.vllm_server --help`.

It queues, streams, measures and refuses like vLLM on the workshop's trn1.2xlarge, but runs no model: every token is the
same word, and a word of the prompt counts as a token. It prints its URL when it is ready and serves until it is ended.
VLLM_API_KEY is vLLM's own variable: with it, clients need the key.
"""

import argparse
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import web

from neuron.images import IMAGE_LINES
from stand_ins.vllm.application import SHUTDOWN_SECONDS, Settings, application
from stand_ins.vllm.engine import Timing
from tools.versions import ROOT

_LOOPBACK = "127.0.0.1"
_KEY_VARIABLE = "VLLM_API_KEY"
_STOP_SECONDS = 10
# Clients that connect at the same moment; an overload has 256.
_BACKLOG = 1024


@contextmanager
def running_server(settings: Settings, port: int = 0) -> Iterator[str]:
    """A server in a process of its own, so that the test's own work does not disturb its timing; its URL."""
    command = [sys.executable, "-m", __name__, "--port", str(port), *_arguments(settings)]
    environment = {**os.environ, _KEY_VARIABLE: settings.api_key or ""}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            url = process.stdout.readline().strip()
            assert url, "the stand-in server did not start"
            yield url
        finally:
            process.terminate()
            process.wait(_STOP_SECONDS)


def main() -> None:
    """Serve until SIGTERM or SIGINT; requests that run then are cut off, as vLLM does."""
    port, settings = _parse(sys.argv[1:])
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((_LOOPBACK, port))
        listener.listen(_BACKLOG)
        sys.stdout.write(f"http://{_LOOPBACK}:{listener.getsockname()[1]}\n")
        sys.stdout.flush()
        web.run_app(
            application(settings),
            sock=listener,
            backlog=_BACKLOG,
            access_log=None,
            print=lambda *_: None,
            handler_cancellation=True,
            shutdown_timeout=SHUTDOWN_SECONDS,
        )


def _arguments(settings: Settings) -> list[str]:
    timing = settings.timing
    return [
        f"--line={settings.line}",
        f"--max-num-seqs={settings.max_num_seqs}",
        f"--time-to-first-token={timing.time_to_first_token_seconds}",
        f"--inter-token={timing.inter_token_seconds}",
        f"--time-factor={timing.time_factor}",
        f"--model={settings.model}",
        f"--max-model-len={settings.max_model_len}",
        f"--answer-tokens={settings.answer_tokens}",
    ]


def _parse(arguments: list[str]) -> tuple[int, Settings]:
    usual = Settings()
    parser = argparse.ArgumentParser(prog="vllm_server", description="a stand-in for a vLLM server; loopback only")
    parser.add_argument("--port", type=int, default=0, help="0, the default, takes a free one")
    parser.add_argument("--line", choices=IMAGE_LINES, default=usual.line, help="image line: metric names and errors")
    parser.add_argument("--max-num-seqs", type=int, default=usual.max_num_seqs, help="slots")
    parser.add_argument("--time-to-first-token", type=float, default=usual.timing.time_to_first_token_seconds)
    parser.add_argument("--inter-token", type=float, default=usual.timing.inter_token_seconds)
    parser.add_argument("--time-factor", type=float, default=1.0, help="how much faster than the two times above")
    parser.add_argument("--model", default=usual.model)
    parser.add_argument("--max-model-len", type=int, default=usual.max_model_len)
    parser.add_argument("--answer-tokens", type=int, default=usual.answer_tokens, help="where an answer ends by itself")
    given = parser.parse_args(arguments)
    timing = Timing(given.time_to_first_token, given.inter_token, given.time_factor)
    settings = Settings(
        line=given.line,
        max_num_seqs=given.max_num_seqs,
        timing=timing,
        model=given.model,
        max_model_len=given.max_model_len,
        answer_tokens=given.answer_tokens,
        api_key=os.environ.get(_KEY_VARIABLE) or None,
    )
    return given.port, settings


if __name__ == "__main__":
    main()
