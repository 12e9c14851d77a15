"""Programs killed at any moment: nothing half-done is ever loaded, and the next run completes."""

import random
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from tests.artifact.sandbox import LINES, Sandbox, local_files, published_files, tree

KILLS = 50
SEED = 5
AT_ONCE = 2


@dataclass(frozen=True)
class Kill:
    """One program that is killed by SIGKILL, with its children, at a write that `moment` (0 to 1) picks.

    `upload` says what becomes of the file that it is writing to the cache.
    """

    number: int
    program: str
    line: str
    moment: float
    upload: str


@dataclass(frozen=True)
class Undisturbed:
    """What happens without a kill: the cache before, how many writes each program makes, what a server then finds."""

    foreign: Sandbox
    writes: Mapping[str, int]
    files: Mapping[str, bytes]


def kills() -> list[Kill]:
    choose = random.Random(SEED)  # noqa: S311 - a sample, no secret
    programs, uploads = ["publish"] * 4 + ["load"], ["kept", "lost"]
    return [
        Kill(number, choose.choice(programs), choose.choice(list(LINES)), choose.random(), choose.choice(uploads))
        for number in range(KILLS)
    ]


def undisturbed(directory: Path, line: str, bytecode: dict[str, str]) -> Undisturbed:
    (directory / "mount").mkdir(parents=True)
    foreign = Sandbox(directory / "foreign", directory / "mount", line, max_num_seqs=8, environment=bytecode)
    assert foreign.publish().code == 0
    own = in_new_cache(foreign, directory / "own")
    writes = {"publish": own.count_writes("publish"), "load": own.other_pod("warm").count_writes("load")}
    started = own.other_pod("warm").start_server()
    assert (started["how"], started["own"], started["whole"]) == ("loaded", True, True)
    return Undisturbed(foreign, writes, local_files(own.other_pod("warm")))


def in_new_cache(foreign: Sandbox, directory: Path) -> Sandbox:
    """A pod whose cache holds another configuration of its model, without the weights."""
    pod = replace(foreign, directory=directory / "pod", cache=directory / "mount", max_num_seqs=4)
    for path, content in tree(foreign.prefix).items():
        target = pod.cache / foreign.artifact.prefix / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return pod


def survive(kill: Kill, usual: Undisturbed, directory: Path) -> int:
    """Kill one program and run it again; the exit code of the killed one."""
    pod = in_new_cache(usual.foreign, directory)
    if kill.program == "load":
        assert pod.other_pod("publisher").publish().code == 0
    killed = pod.kill(kill.program, 1 + int(kill.moment * usual.writes[kill.program]), STANDIN_KILLED=kill.upload)

    if kill.program == "publish":
        other = pod.other_pod("other")
        meanwhile = other.load(STANDIN_KILLED=kill.upload)
        if meanwhile.code == 0:
            assert local_files(other) == usual.files, kill
        else:
            assert "is not published" in meanwhile.failure, kill

    again = pod.end(pod.begin(kill.program, STANDIN_KILLED=kill.upload))
    assert again.code == 0, (kill, killed.log, again.log)
    assert published_files(pod) == usual.files, kill
    assert local_files(pod) == usual.files, kill
    assert len(pod.downloads()) == len(set(pod.downloads())), "nothing is downloaded twice"
    return killed.code


def test_killed_at_fifty_random_points_nothing_incomplete_or_foreign_is_loaded_and_every_rerun_completes(
    tmp_path: Path, bytecode: dict[str, str]
) -> None:
    usual = {line: undisturbed(tmp_path / line, line, bytecode) for line in LINES}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        codes = pool.map(lambda kill: survive(kill, usual[kill.line], tmp_path / str(kill.number)), kills())
        assert list(codes) == [-9] * KILLS
