"""What publishing and loading do when nothing goes wrong, on every image line."""

import json

from tests.artifact.sandbox import Sandbox, tree

RECOGNISABLE = "hf_standin_recognisable"
WEIGHTS = {"config.json", "model.safetensors", "nothing.txt", "tokenizer.json"}


def test_what_is_published_starts_a_server_that_neither_compiles_nor_asks_the_hub(pod_of_each_line: Sandbox) -> None:
    published = pod_of_each_line.publish()
    assert published.code == 0, published.log
    assert published.message.startswith(f"published {pod_of_each_line.artifact.prefix}")

    warm = pod_of_each_line.other_pod("warm")
    loaded = warm.load(HF_HUB_OFFLINE="1", STANDIN_HUB="unreachable")
    assert loaded.code == 0, loaded.log
    started = warm.start_server()
    assert (started["how"], started["own"], started["whole"]) == ("loaded", True, True)
    assert warm.downloads() == []


def test_the_manifest_has_every_file_and_the_inputs_in_clear(pod: Sandbox) -> None:
    pod.publish()
    (manifest_path,) = pod.prefix.glob("manifest-*.json")
    manifest = json.loads(manifest_path.read_text())
    assert manifest["key"] == pod.artifact.key
    assert manifest["inputs"] == pod.artifact.inputs
    paths = {f"model/{path}" for path in WEIGHTS} | {
        f"artifacts/{path}" for path in tree(pod.local / "artifacts") if "neuronxcc" in path or "/" not in path
    }
    assert set(manifest["files"]) == paths
    assert {"artifacts/model.pt", "artifacts/neuron_config.json"} <= paths
    for path, file in manifest["files"].items():
        assert (pod.local / path).stat().st_size == file["size"]


def test_log_and_termination_message_have_stages_with_bytes_and_seconds(pod: Sandbox) -> None:
    published = pod.publish()
    assert "publish: compile: started" in published.log
    for stage in ("download", "copy and verify model", "copy and verify artifacts"):
        assert f"publish: {stage}: done, " in published.log
        (line,) = [line for line in published.message.splitlines() if line.startswith(f"{stage} ")]
        assert " bytes in " in line


def test_weights_that_exist_as_safetensors_are_not_downloaded_twice(pod: Sandbox) -> None:
    pod.publish()
    assert set(pod.downloads()) == WEIGHTS


def test_publishing_again_does_nothing(pod: Sandbox) -> None:
    pod.publish()
    before = tree(pod.cache)
    again = pod.other_pod("again").publish()
    assert again.code == 0
    assert "is published already" in again.message
    assert tree(pod.cache) == before
    assert pod.other_pod("again").downloads() == []


def test_another_configuration_of_the_revision_shares_its_weights(pod: Sandbox) -> None:
    pod.publish()
    before = tree(pod.cache)
    other = pod.other_pod("other", max_num_seqs=8)
    assert other.publish().code == 0
    assert other.downloads() == []
    added = tree(pod.cache).keys() - before.keys()
    assert added
    assert all(f"/{other.artifact.key}/" in path for path in added)
    assert {path: content for path, content in tree(pod.cache).items() if path in before} == before


def test_a_restarted_init_container_loads_nothing_again_unless_it_was_changed(pod: Sandbox) -> None:
    pod.publish()
    warm = pod.other_pod("warm")
    warm.load()
    assert "load: artifacts: complete already" in warm.load().log
    (warm.local / "artifacts" / "foreign").write_text("")
    assert "load: load artifacts: done" in warm.load().log
    assert not (warm.local / "artifacts" / "foreign").exists()


def test_on_a_miss_a_pod_that_may_compile_does_so_and_leaves_the_cache_alone(pod_of_each_line: Sandbox) -> None:
    ended = pod_of_each_line.load("--on-miss", "compile", HF_HUB_OFFLINE="1", VLLM_NEURON_DISABLE_WARMUP_COMPILE="1")
    assert ended.code == 0, ended.log
    assert ended.message.startswith(f"compiled {pod_of_each_line.artifact.prefix} here, because it is not published")
    assert pod_of_each_line.start_server()["how"] == "loaded"
    assert tree(pod_of_each_line.cache) == {}


def test_a_sample_of_hashes_has_all_small_files(pod: Sandbox) -> None:
    assert pod.publish("--hashes", "sample").code == 0
    assert pod.other_pod("warm").load("--hashes", "sample").code == 0


def test_the_programs_touch_the_token_only_to_download(pod: Sandbox) -> None:
    published = pod.publish(HF_TOKEN=RECOGNISABLE)
    assert published.code == 0, "the stand-in for vLLM refuses to start where it could read the token"
    assert RECOGNISABLE not in published.log + published.message
    assert not any(RECOGNISABLE.encode() in content for content in tree(pod.directory).values())
    assert not any(RECOGNISABLE.encode() in content for content in tree(pod.cache).values())
