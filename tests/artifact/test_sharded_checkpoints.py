"""Pre-sharded checkpoints: each rank's weights are part of the artifact, and a server needs no others."""

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.artifact.sandbox import Sandbox, local_files, published_files, published_once, tree

RANK_FILES = {f"artifacts/weights/tp{rank}_sharded_checkpoint.safetensors" for rank in (0, 1)}
WEIGHTS = "model/model.safetensors"


@pytest.fixture
def sharded(pod: Sandbox) -> Sandbox:
    """A pod that wants a pre-sharded checkpoint."""
    return replace(pod, sharded_checkpoint=True)


@pytest.fixture(scope="module")
def cache_with_one(tmp_path_factory: pytest.TempPathFactory, bytecode: dict[str, str]) -> Path:
    """A cache in which one pre-sharded artifact is; not to be changed."""
    return published_once(tmp_path_factory.mktemp("published"), sharded_checkpoint=True, environment=bytecode)


@pytest.fixture
def published(sharded: Sandbox, cache_with_one: Path) -> Sandbox:
    """A pod that wants what another pod published."""
    shutil.copytree(cache_with_one, sharded.cache, dirs_exist_ok=True)
    return sharded


def place(pod: Sandbox, path: str) -> Path:
    """Where the cache has the file of a local path."""
    (manifest,) = pod.prefix.glob("manifest-*.json")
    return pod.prefix.parent / str(json.loads(manifest.read_text())["files"][path]["place"])


def hash_of_weights(pod: Sandbox) -> str:
    """The hash of the model's own weights, as they were published."""
    return hashlib.sha256(published_files(pod)[WEIGHTS]).hexdigest()


@pytest.mark.parametrize("line", ["v0", "nxdi"])
def test_a_server_starts_from_the_shards_alone_which_hold_every_weight(sharded: Sandbox, line: str) -> None:
    publisher = replace(sharded, line=line)
    ended = publisher.publish()
    assert ended.code == 0, ended.log
    published = published_files(publisher)
    assert RANK_FILES | {WEIGHTS} <= published.keys()

    warm = publisher.other_pod("warm")
    assert warm.load(HF_HUB_OFFLINE="1", STANDIN_HUB="unreachable").code == 0
    assert published.keys() - local_files(warm).keys() == {WEIGHTS}
    started = warm.start_server()
    assert (started["how"], started["own"], started["whole"]) == ("loaded", True, True)
    assert started["weights"] == hash_of_weights(warm)


def test_both_ways_to_shard_are_artifacts_of_their_own_and_share_the_models_weights(published: Sandbox) -> None:
    before = tree(published.cache)
    at_load = published.other_pod("other", sharded_checkpoint=False)
    assert "differs in neuron_config.save_sharded_checkpoint: wanted nothing, found true" in at_load.load().failure
    assert at_load.publish().code == 0
    assert at_load.downloads() == []
    assert not RANK_FILES & published_files(at_load).keys()
    assert {path: content for path, content in tree(published.cache).items() if path in before} == before


@pytest.mark.parametrize("damaged", sorted(RANK_FILES))
def test_a_missing_or_damaged_shard_is_named_and_refused_and_published_again(published: Sandbox, damaged: str) -> None:
    file = place(published, damaged)
    content = file.read_bytes()
    name = damaged.removeprefix("artifacts/")
    file.write_bytes(content[:-1])
    assert f"{damaged} has {len(content) - 1} bytes, published were {len(content)}" in published.load().failure
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert f"the content of {name} is not what was published" in published.load().failure
    file.unlink()
    assert f"{damaged} is missing" in published.load("--on-miss", "compile").failure

    again = published.other_pod("again").publish()
    assert again.code == 0, again.log
    assert published.load().code == 0
    assert published.start_server()["weights"] == hash_of_weights(published)


def test_a_compiler_that_leaves_a_rank_out_publishes_nothing(sharded: Sandbox) -> None:
    ended = sharded.publish(STANDIN_COMPILER="shards less")
    assert "weights/tp1_sharded_checkpoint.safetensors is not complete" in ended.failure
    assert tree(sharded.cache) == {}


def test_a_compiler_that_dies_between_shards_shards_again_and_compiles_nothing_again(sharded: Sandbox) -> None:
    assert "compiling was killed" in sharded.publish(STANDIN_COMPILER="killed while sharding").failure
    assert (sharded.local / "artifacts" / "model.pt").exists(), "it looks compiled"
    again = sharded.publish()
    assert again.code == 0, again.log
    assert "compiled MODULE" not in again.log
    published = published_files(sharded)
    assert b"".join(published[path] for path in sorted(RANK_FILES)) == published[WEIGHTS]


def test_a_pod_that_has_the_shards_alone_brings_the_weights_before_it_compiles(published: Sandbox) -> None:
    assert published.load().code == 0
    weights = hash_of_weights(published)
    (manifest,) = published.prefix.glob("manifest-*.json")
    manifest.unlink()
    shutil.rmtree(published.local / "artifacts")
    ended = published.load("--on-miss", "compile")
    assert ended.code == 0, ended.log
    assert published.start_server()["weights"] == weights


def test_a_pod_that_compiles_for_itself_shards_for_itself(sharded: Sandbox) -> None:
    assert sharded.load("--on-miss", "compile").code == 0
    assert local_files(sharded).keys() >= RANK_FILES
    assert sharded.start_server()["how"] == "loaded"
    assert tree(sharded.cache) == {}


def test_a_restarted_init_container_brings_nothing_again(published: Sandbox) -> None:
    assert published.load().code == 0
    again = published.load()
    assert "load: model: complete already" in again.log
    assert "load: artifacts: complete already" in again.log
