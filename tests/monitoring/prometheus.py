"""A real Prometheus on loopback, and pages for it to scrape."""

import http.client
import json
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import yaml

from tools.toolchain import ensure

_READY_SECONDS = 60
_STOP_SECONDS = 20
_LOOPBACK = "127.0.0.1"


class Prometheus:
    """A running Prometheus."""

    def __init__(self, port: int) -> None:
        self._port = port

    def query(self, expression: str) -> list[dict[str, Any]]:
        """What the expression gives now, as the HTTP API has it."""
        answer = self._get(f"/api/v1/query?{urlencode({'query': expression})}")
        if answer["status"] != "success":
            pytest.fail(f"{expression}: {answer['error']}")
        result: list[dict[str, Any]] = answer["data"]["result"]
        return result

    def is_ready(self) -> bool:
        try:
            self._get("/api/v1/status/buildinfo")
        except (OSError, ValueError):
            return False
        return True

    def _get(self, path: str) -> Any:
        # Not urllib: an environment's proxy must not see a request to loopback.
        connection = http.client.HTTPConnection(_LOOPBACK, self._port, timeout=10)
        try:
            connection.request("GET", path)
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()


@contextmanager
def running_prometheus(folder: Path, targets: Mapping[str, Mapping[str, str]], rules: Path) -> Iterator[Prometheus]:
    """A Prometheus that scrapes these addresses each second, with the labels that a PodMonitor would give them."""
    scrape = {
        "job_name": "targets",
        # kube-state-metrics names the pods that it speaks of, not its own.
        "honor_labels": True,
        "static_configs": [{"targets": [address], "labels": dict(labels)} for address, labels in targets.items()],
    }
    every_second = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    config = {"global": every_second, "rule_files": [str(rules)], "scrape_configs": [scrape]}
    file = folder / "prometheus.yaml"
    file.write_text(yaml.safe_dump(config))
    port = free_port()
    program = ensure(["prometheus"], report=lambda _: None).path("prometheus")
    command = [
        *(str(program), f"--config.file={file}", f"--storage.tsdb.path={folder / 'data'}"),
        *(f"--web.listen-address={_LOOPBACK}:{port}", "--log.level=error"),
    ]
    with (folder / "prometheus.log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            prometheus = Prometheus(port)
            deadline = time.monotonic() + _READY_SECONDS
            while not prometheus.is_ready():
                if process.poll() is not None or time.monotonic() > deadline:
                    pytest.fail((folder / "prometheus.log").read_text())
                time.sleep(0.1)
            yield prometheus
        finally:
            process.terminate()
            process.wait(_STOP_SECONDS)


@contextmanager
def served_page(text: str) -> Iterator[str]:
    """A page of metrics, always the same; its address."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            """Not to the test's output."""

    server = ThreadingHTTPServer((_LOOPBACK, 0), Page)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"{_LOOPBACK}:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def free_port() -> int:
    """A port of loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind((_LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port
