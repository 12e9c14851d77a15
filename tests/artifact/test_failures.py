"""Every failure ends in one line, a non-zero exit code, and a cache that is as it was."""

import json
import re
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.artifact.sandbox import Ended, Sandbox, published_once, tree


@pytest.fixture(scope="module")
def cache_with_one(tmp_path_factory: pytest.TempPathFactory, bytecode: dict[str, str]) -> Path:
    """A cache in which one artifact is; not to be changed."""
    return published_once(tmp_path_factory.mktemp("published"), environment=bytecode)


@pytest.fixture
def published(pod: Sandbox, cache_with_one: Path) -> Sandbox:
    """A pod that wants what another pod published."""
    shutil.copytree(cache_with_one, pod.cache, dirs_exist_ok=True)
    return pod


RECOGNISABLE = "hf_standin_recognisable"


def largest_file(directory: Path) -> Path:
    return max((path for path in directory.rglob("files/*")), key=lambda path: path.stat().st_size)


def truncate(pod: Sandbox) -> None:
    path = largest_file(pod.prefix.parent)
    path.write_bytes(path.read_bytes()[:-1])


def flip_a_byte(pod: Sandbox) -> None:
    path = largest_file(pod.prefix.parent)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def flip_a_byte_of_an_artifact(pod: Sandbox) -> None:
    path = largest_file(pod.prefix)
    path.write_bytes(b"\0" + path.read_bytes()[1:])


def remove_a_file(pod: Sandbox) -> None:
    largest_file(pod.prefix).unlink()


def change_manifest(pod: Sandbox, change: Callable[[dict[str, Any]], None]) -> None:
    (path,) = pod.prefix.glob("manifest-*.json")
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


def put_another_key_there(pod: Sandbox) -> None:
    change_manifest(pod, lambda manifest: manifest.update(key="0" * 20))


def put_other_inputs_there(pod: Sandbox) -> None:
    change_manifest(pod, lambda manifest: manifest["inputs"].update(max_num_seqs=8))


def make_the_compiler_older(pod: Sandbox) -> None:
    change_manifest(pod, lambda manifest: manifest.update(tools={"neuronx-cc": "2.20.9961.0"}))


DAMAGES = {
    truncate: r"model/model.safetensors has 255999 bytes, published were 256000",
    flip_a_byte: r"the content of model/model.safetensors|the content of model.safetensors is not what was published",
    flip_a_byte_of_an_artifact: r"the content of .* is not what was published",
    remove_a_file: r"artifacts/.* is missing",
    put_another_key_there: r"its manifest is of key 00000000000000000000",
    put_other_inputs_there: r"its manifest is of other inputs \(max_num_seqs: wanted 4, found 8\)",
    make_the_compiler_older: r"its manifest is stale, .*neuronx-cc: wanted nothing, found \"2.20.9961.0\"",
}


@pytest.mark.parametrize(("damage", "reason"), DAMAGES.items(), ids=[damage.__name__ for damage in DAMAGES])
def test_a_damaged_publication_is_refused_and_repaired_by_publishing_again(
    published: Sandbox, damage: Callable[[Sandbox], None], reason: str
) -> None:
    damage(published)
    before = tree(published.cache)
    told = published.load("--on-miss", "compile").failure
    assert published.artifact.prefix in told
    assert re.search(reason, told), told
    assert tree(published.cache) == before

    again = published.other_pod("again").publish()
    assert again.code == 0, again.log
    assert {path: tree(published.cache)[path] for path in before} == before, "what is wrong is left, never overwritten"
    assert published.load().code == 0
    assert published.start_server()["whole"]


def test_a_miss_names_the_input_in_which_the_nearest_publication_differs(published: Sandbox) -> None:
    wants_more = published.other_pod("other", max_num_seqs=8)
    assert wants_more.load().failure == (
        f"failed: {wants_more.artifact.prefix} is not published; the nearest that is, "
        f"{published.prefix.parent.name}/{published.artifact.key}, differs in max_num_seqs: wanted 8, found 4"
    )
    assert not (wants_more.local / "artifacts").exists()


def test_a_miss_in_an_empty_cache_says_so(pod: Sandbox) -> None:
    assert pod.load().failure == f"failed: {pod.artifact.prefix} is not published; nothing of this model is"


def test_files_without_a_whole_manifest_are_a_miss_and_publishing_again_completes_them(published: Sandbox) -> None:
    (manifest,) = published.prefix.glob("manifest-*.json")
    manifest.write_bytes(manifest.read_bytes()[:-3])
    before = tree(published.cache)
    assert "is not published" in published.load().failure
    assert published.publish().code == 0
    added = tree(published.cache).keys() - before.keys()
    assert added == {f"{published.artifact.prefix}manifest-2.json"}
    assert published.other_pod("warm").load().code == 0


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ("expired", "Hugging Face refuses the token"),
        ("no revision", "does not exist; pin a commit"),
        ("gated", "is gated: accept its terms"),
        ("unreachable", "failed: ConnectionError: cannot connect with ***"),
        ("disk full", "no space left on the disk"),
        ("partial", "tokenizer.json of TinyLlama/TinyLlama-1.1B-Chat-v1.0 is not complete after its download"),
    ],
)
def test_a_download_that_fails_publishes_nothing_and_the_next_one_ends(
    pod: Sandbox, behaviour: str, reason: str
) -> None:
    ended = pod.publish(STANDIN_HUB=behaviour, HF_TOKEN=RECOGNISABLE)
    assert reason in ended.failure
    assert RECOGNISABLE not in ended.log + ended.message
    assert tree(pod.cache) == {}
    assert pod.publish().code == 0


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ("fails", "compiling failed with exit code 70"),
        ("killed", "compiling was killed"),
        ("silent", "compiling ended without error, but model.pt is not complete"),
    ],
)
def test_a_failing_compiler_publishes_nothing_and_its_cached_failure_is_no_hit(
    pod: Sandbox, behaviour: str, reason: str
) -> None:
    assert reason in pod.publish(STANDIN_COMPILER=behaviour).failure
    assert tree(pod.cache) == {}
    again = pod.publish()
    assert again.code == 0, again.log
    assert "cached failure" not in again.log
    assert "publish: download: complete already" in again.log


def test_of_modules_that_a_failing_compiler_completed_none_is_compiled_again(pod: Sandbox) -> None:
    assert "compiled MODULE" in pod.publish(STANDIN_COMPILER="fails later").log
    again = pod.publish()
    assert again.code == 0, again.log
    assert "using a cached neff" in again.log
    assert again.log.count("compiled MODULE") == 1


def test_a_flag_that_the_line_does_not_have_ends_the_compiler(pod: Sandbox) -> None:
    ended = pod.publish(STANDIN_LINE="v0")
    assert "unrecognized arguments: --additional-config" in ended.log
    assert "compiling failed with exit code 2" in ended.failure


def test_a_full_disk_of_the_pod_ends_loading(published: Sandbox) -> None:
    before = tree(published.cache)
    ended = published.load(STANDIN_FULL=f"{published.local}:100000")
    assert "no space left on the disk" in ended.failure
    assert tree(published.cache) == before
    assert published.load().code == 0


def test_a_full_disk_behind_the_cache_ends_publishing_without_a_manifest(pod: Sandbox) -> None:
    ended = pod.publish(STANDIN_FULL=f"{pod.cache}:500000", STANDIN_KILLED="lost")
    assert "no space left on the disk" in ended.failure
    assert not list(pod.cache.rglob("manifest-*.json"))[1:]
    assert "is not published" in pod.other_pod("warm").load().failure
    again = pod.publish()
    assert again.code == 0, again.log
    assert "publish: compile: complete already" in again.log


def test_sigterm_ends_a_publisher_with_its_compiler_and_the_next_one_goes_on(pod: Sandbox) -> None:
    process = pod.begin("publish")
    assert process.stdout is not None
    while "compile: started" not in process.stdout.readline():
        time.sleep(0)
    process.send_signal(signal.SIGTERM)
    assert "stopped by SIGTERM" in pod.end(process).failure
    assert pod.publish().code == 0


def test_arguments_that_would_download_the_model_again_are_refused(pod: Sandbox) -> None:
    elsewhere = pod.other_pod("elsewhere")
    process = pod.begin("publish", "--local", str(elsewhere.local))
    assert f"have no --model={elsewhere.local}/model" in pod.end(process).failure


def test_a_cache_that_is_not_mounted_is_no_empty_cache(pod: Sandbox) -> None:
    pod.cache.rmdir()
    assert "the cache is not mounted" in pod.publish(STANDIN_MOUNT="").failure


def finished(pods: list[Sandbox]) -> list[Ended]:
    # Longer than a busy machine may take to start the second after the first.
    processes = [(pod, pod.begin("publish", STANDIN_COMPILE_SECONDS="5")) for pod in pods]
    return [pod.end(process) for pod, process in processes]


def test_of_two_publishers_at_once_one_wins_and_the_other_sees_it(pod: Sandbox) -> None:
    pods = [pod, pod.other_pod("second")]
    ended = finished(pods)
    assert [one.code for one in ended] == [0, 0], [one.log for one in ended]
    told = sorted(one.message.partition(" ")[0] for one in ended)
    assert told == ["another", "published"], told
    assert len(list(pod.prefix.glob("manifest-*.json"))) == 1
    warm = pod.other_pod("warm")
    assert warm.load().code == 0
    assert warm.start_server()["whole"]
