"""Edges with real programs before a stand-in server: what the tests of all kinds share."""

import base64
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from components.edges.plan import EdgePlan
from stand_ins.vllm.application import Settings
from stand_ins.vllm.engine import Timing
from stand_ins.vllm_server import running_server
from tests.edge.envoy import running_envoy
from tests.edge.nginx import running_nginx
from tests.edge.plans import KEYS, plan
from tools import toolchain

# Durations of the measured system, divided by this.
TIME_FACTOR = 4
MAX_NUM_SEQS = 4


def bearer(client: str) -> dict[str, str]:
    """How OpenAI's clients show a key."""
    return {"Authorization": f"Bearer {KEYS[client]}"}


def basic(client: str) -> dict[str, str]:
    """How nginx takes a name and a key."""
    return {"Authorization": f"Basic {base64.b64encode(f'{client}:{KEYS[client]}'.encode()).decode()}"}


@dataclass(frozen=True)
class Kind:
    """A kind of edge: its name in stack files, how clients show keys, and the program that runs it."""

    name: str
    credentials: Callable[[str], dict[str, str]]
    run: Callable[[EdgePlan, Mapping[str, int], Path], AbstractContextManager[str]]

    @contextmanager
    def before(self, servers: Mapping[str, str], directory: Path, **settings: Any) -> Iterator[str]:
        """The edge with these settings before servers by name; its URL."""
        edge = {"kind": self.name, "proxies": 1, **settings}
        ports = {name: int(url.rpartition(":")[2]) for name, url in servers.items()}
        made = plan(edge, max_num_seqs=MAX_NUM_SEQS, servers=len(servers))
        with self.run(made, ports, directory) as url:
            yield url


@pytest.fixture(scope="session")
def egctl() -> Path:
    """Envoy Gateway's own command; built the first time (about five minutes)."""
    return toolchain.ensure(["egctl"]).path("egctl")


def all_kinds(egctl: Path) -> tuple[Kind, ...]:
    """The kinds of edge that read requests."""
    envoy = Kind("envoy-gateway", bearer, lambda made, ports, folder: running_envoy(made, ports, egctl, folder))
    return envoy, Kind("ingress-nginx", basic, running_nginx)


@pytest.fixture(scope="session")
def kinds(egctl: Path) -> dict[str, Kind]:
    """Them by name."""
    return {kind.name: kind for kind in all_kinds(egctl)}


@pytest.fixture(scope="session", params=["envoy-gateway", "ingress-nginx"])
def kind(request: pytest.FixtureRequest, kinds: dict[str, Kind]) -> Kind:
    """Each of them."""
    return kinds[request.param]


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """A server with the measured timing, faster by TIME_FACTOR; its URL."""
    settings = Settings(max_num_seqs=MAX_NUM_SEQS, timing=Timing(time_factor=TIME_FACTOR))
    with running_server(settings) as url:
        yield url


@pytest.fixture(scope="session")
def edge(kind: Kind, server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The edge with its default settings before the server; its URL."""
    with kind.before({"llm-0": server}, tmp_path_factory.mktemp(kind.name)) as url:
        yield url
