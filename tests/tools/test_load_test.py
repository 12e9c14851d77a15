"""`make load-test`: against a real HTTP server that streams with the source's timing, and against what can go wrong."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from stand_ins.vllm.application import Settings
from stand_ins.vllm.engine import Timing
from stand_ins.vllm_server import running_server
from tools.load_test.profiles import PROFILES, Level, Profile
from tools.load_test.report import Answer, measured, percentile, table
from tools.versions import ROOT

KEY = "a-key-of-this-test"
TIME_FACTOR = 4
# Made by `make .venv-load-test/.installed`, which `make test` does.
PYTHON = ROOT / ".venv-load-test" / "bin" / "python"
with_load_tool = pytest.mark.skipif(
    not PYTHON.exists() and "CI" not in os.environ, reason="make .venv-load-test/.installed has not been run"
)


def run(url: str, folder: Path, *options: str, key: str = "") -> "subprocess.CompletedProcess[str]":
    """The command with the profile llmperf, in the load test's own environment."""
    command = [str(PYTHON), "-m", "tools.load_test", url, "llmperf", "--results", str(folder), *options]
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "NO_PROXY": "127.0.0.1", "LOAD_TEST_API_KEY": key}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=200, check=False)


def test_a_level_counts_answers_and_reasons_apart() -> None:
    answers = [Answer(1.0, 0.1, 10), Answer(2.0, 0.2, 10), Answer(error="HTTP 429"), Answer(error="HTTP 429")]
    result = measured(2, answers, seconds=4.0)
    assert (result.requests, result.errors) == (4, {"HTTP 429": 2})
    assert result.level.requests_per_second == 0.5
    assert result.level.tokens_per_second == 5.0
    assert result.level.mean_seconds == 1.5
    assert result.level.first_token_seconds == pytest.approx(0.15)
    assert result.level.inter_token_seconds == pytest.approx((0.1 + 0.2) / 2)


def test_a_level_without_answers_has_no_numbers() -> None:
    assert measured(2, [Answer(error="HTTP 429")], seconds=1.0).level == Level(2)


def test_percentiles_lie_between_the_nearest_values() -> None:
    values = [float(number) for number in range(101)]
    assert (percentile(values, 50), percentile(values, 99)) == (50.0, 99.0)
    assert percentile([3.0], 95) == 3.0


def test_the_table_has_the_sources_numbers_below_the_measured_ones() -> None:
    profile = PROFILES["overload"]
    text = table(profile, [measured(256, [Answer(1.0, 0.1, 20)], 1.0)])
    here, source = text.splitlines()[1:]
    assert here.split()[:2] == ["256", "here"]
    assert source.split()[:2] == ["source", "10.94"]
    assert "17.84" in source


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_every_level_is_bounded_and_has_a_number_of_the_source(profile: Profile) -> None:
    for level in profile.source:
        requests = profile.requests_per_client(level.concurrency) * level.concurrency
        assert profile.requests <= requests <= max(2 * level.concurrency, profile.requests + level.concurrency)
        assert level.requests_per_second or level.tokens_per_second


@pytest.mark.parametrize("url", ["127.0.0.1:8080", "ftp://host", "http://", "http://[::1", "http://host:99999999", ""])
def test_what_is_no_url_is_one_line(url: str) -> None:
    command = [sys.executable, "-m", "tools.load_test", url, "llmperf"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert (
        result.stderr
        == f"error: URL: found {url}; allowed: http://host:port or https://host; fix: add what is missing\n"
    )


@with_load_tool
def test_the_sources_profile_is_measured_within_its_numbers(tmp_path: Path) -> None:
    """Against a server with the source's timing, four times as fast."""
    with running_server(Settings(timing=Timing(time_factor=TIME_FACTOR), api_key=KEY)) as url:
        result = run(url, tmp_path, key=KEY)
    assert result.returncode == 0, result.stderr
    document = json.loads((tmp_path / "llmperf.json").read_text())
    (level,) = document["levels"]
    (source,) = document["source"]
    assert (level["requests"], level["errors"]) == (50, {})
    # A loaded machine measures less, never more.
    assert 0.3 * source["tokens_per_second"] < level["level"]["tokens_per_second"] / TIME_FACTOR < 400
    assert level["level"]["first_token_seconds"] < level["level"]["p50_seconds"]
    assert "336.6" in result.stdout
    assert (tmp_path / "llmperf.svg").read_text().startswith("<?xml")
    assert "Total requests" in result.stderr + result.stdout, "progress"
    assert KEY not in result.stdout + result.stderr + "".join(path.read_text() for path in tmp_path.glob("llmperf.*"))


@with_load_tool
def test_nothing_is_sent_after_the_time_is_over(tmp_path: Path) -> None:
    with running_server(Settings()) as url:
        result = run(url, tmp_path, "--seconds", "2")
    (level,) = json.loads((tmp_path / "llmperf.json").read_text())["levels"]
    assert level["seconds"] < 20
    assert list(level["errors"]) == ["time limit of the test"]
    assert "time limit of the test" in result.stdout


@with_load_tool
def test_a_key_that_is_not_accepted_is_one_line(tmp_path: Path) -> None:
    with running_server(Settings(api_key=KEY)) as url:
        result = run(url, tmp_path, key="wrong")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == f"error: {url}/v1/models: 401, the key is not accepted; set LOAD_TEST_API_KEY\n"


@with_load_tool
def test_a_server_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    result = run("http://127.0.0.1:9", tmp_path)
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1
    assert "no connection" in result.stderr
    assert "check the URL's host and port" in result.stderr


@with_load_tool
def test_refused_requests_are_counted_and_a_test_without_answers_fails(tmp_path: Path) -> None:
    with refusing_server() as url:
        result = run(url, tmp_path)
    assert result.returncode == 1
    assert "50 x HTTP 429" in result.stdout
    assert result.stderr.endswith("error: no request was answered\n")
    assert "Traceback" not in result.stderr


class _Refusing(BaseHTTPRequestHandler):
    """Lists a model and answers every request for tokens with 429."""

    def do_GET(self) -> None:
        self._send(200, {"object": "list", "data": [{"id": "model", "object": "model", "owned_by": "test"}]})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._send(429, {"error": {"message": "too many requests"}})

    def _send(self, status: int, body: dict[str, object]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that it is called by
        pass


@contextmanager
def refusing_server() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Refusing)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
