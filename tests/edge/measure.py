"""`python -m tests.edge.measure`: 256 clients in real time, with each kind of edge and without one, as a table.

About two minutes; nothing is judged. The server is the stand-in with the measured timing, max_num_seqs 4.
"""

import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from stand_ins.vllm.application import Settings
from stand_ins.vllm_server import running_server
from tests.edge.clients import USUAL, Answer, complete, keep_asking, p99, statuses
from tests.edge.conftest import MAX_NUM_SEQS, all_kinds
from tools import toolchain

CLIENTS = 256
SECONDS = 30


def main() -> None:
    """Print a line as soon as it is measured."""
    _row("edge", "load", "200", "429", "p99 of 200", "slowest 429")
    _row(*["---"] * 6)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(running_server(Settings(max_num_seqs=MAX_NUM_SEQS)))
        _show("none", "once", _once(server, {}))
        for kind in all_kinds(toolchain.ensure(["egctl"]).path("egctl")):
            (directory := folder / kind.name).mkdir()
            edge = stack.enter_context(kind.before({"llm-0": server}, directory))
            credentials = kind.credentials("team-a")
            _show(kind.name, "once", _once(edge, credentials))
            _show(kind.name, f"{SECONDS} s", keep_asking(edge, credentials, CLIENTS, SECONDS))


def _once(url: str, headers: Mapping[str, str]) -> list[Answer]:
    return complete(url, headers, *[USUAL] * CLIENTS)


def _show(edge: str, load: str, answers: Sequence[Answer]) -> None:
    served = [answer.seconds for answer in answers if answer.status == 200]
    slowest = max((answer.seconds for answer in answers if answer.status == 429), default=0)
    counts = statuses(answers)
    assert counts.keys() <= {200, 429}, counts
    _row(edge, load, counts[200], counts.get(429, 0), f"{p99(served):.2f} s", f"{slowest:.2f} s")


def _row(*cells: object) -> None:
    sys.stdout.write(f"| {' | '.join(map(str, cells))} |\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
