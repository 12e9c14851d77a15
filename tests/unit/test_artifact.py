"""The artifact's key: every input that changes what is compiled changes it, nothing else does."""

import json
from collections.abc import Mapping
from dataclasses import fields, replace

import pytest

from neuron.artifact import Artifact, artifact, differences
from neuron.errors import ImpossibleInputError
from neuron.images import IMAGE_LINES, image_line, model_arguments
from neuron.instances import instance_type
from neuron.model import Model
from tests.unit.builders import model

OVERRIDES = {"enable_bucketing": False, "context_encoding_buckets": [512, 1024]}

# Of the model's fields: estimates of size and time, which no compiler sees.
ESTIMATES = {"checkpoint_gb", "cold_start_seconds"}
CHANGED: dict[str, object] = {
    "id": "Qwen/Qwen3-4B",
    "revision": "0" * 40,
    "checkpoint_gb": 12.0,
    "max_model_len": 2048,
    "max_num_seqs": 8,
    "tensor_parallel": 1,
    "dtype": "float16",
    "cold_start_seconds": 600,
    "sharded_checkpoint": True,
}
# Inputs that are not called like the field behind them.
INPUTS = {"id": "model", "sharded_checkpoint": "neuron_config.save_sharded_checkpoint"}

PATH = "/model/model"


def usual(changed: Model | None = None, overrides: Mapping[str, object] | None = None) -> Artifact:
    overridden = OVERRIDES if overrides is None else overrides
    return artifact(image_line("nxdi-0.13"), changed or model(), overridden, instance_type("trn1.2xlarge"))


def test_the_key_of_a_configuration_is_known() -> None:
    assert usual().key == "c3e9772069497aef46d4", (
        "a changed key makes every published artifact a miss: change LAYOUT, and say so"
    )
    assert usual().prefix == f"models/{model().id}@{model().revision}/{usual().key}/"


@pytest.mark.parametrize("field", [field.name for field in fields(Model)])
def test_every_field_of_the_model_but_estimates_changes_the_key_and_is_named(field: str) -> None:
    changed = usual(replace(model(), **{field: CHANGED[field]}))  # type: ignore[arg-type]
    assert (changed.key == usual().key) == (field in ESTIMATES)
    named = [phrase.partition(":")[0] for phrase in differences(usual(), changed)]
    assert named == [] if field in ESTIMATES else named == [INPUTS.get(field, field)]


@pytest.mark.parametrize("field", [field.name for field in fields(Model)])
def test_whatever_changes_the_servers_arguments_changes_the_key(field: str) -> None:
    line, changed = image_line("nxdi-0.13"), replace(model(), **{field: CHANGED[field]})  # type: ignore[arg-type]
    if model_arguments(line, changed, OVERRIDES, PATH) != model_arguments(line, model(), OVERRIDES, PATH):
        assert usual(changed).key != usual().key


def test_every_image_line_has_a_key_of_its_own() -> None:
    instance = instance_type("trn2.3xlarge")
    assert len({artifact(line, model(), OVERRIDES, instance).key for line in IMAGE_LINES.values()}) == len(IMAGE_LINES)


def test_the_sdk_runtime_image_and_environment_of_a_line_change_the_key() -> None:
    line, instance = image_line("v0-0.9.1"), instance_type("trn1.2xlarge")
    changes = {"sdk": "2.26.1", "runtime": "2.28.19", "tag": "other", "environment": ()}
    for name, value in changes.items():
        changed = replace(line, **{name: value})  # type: ignore[arg-type]
        assert artifact(changed, model(), {}, instance).key != artifact(line, model(), {}, instance).key, name


def test_the_compiler_settings_change_the_key_in_value_and_nesting_but_not_in_order() -> None:
    reordered = dict(reversed(OVERRIDES.items()))
    assert list(reordered) != list(OVERRIDES)
    assert usual(overrides=reordered).key == usual().key
    assert usual(overrides={**OVERRIDES, "enable_bucketing": True}).key != usual().key
    assert usual(overrides={**OVERRIDES, "on_device_sampling_config": {"dynamic": True}}).key != usual().key


def test_trn1_and_inf2_share_an_artifact_and_trn2_has_its_own() -> None:
    line = image_line("nxdi-0.13")
    trn1, inf2, trn2 = (
        artifact(line, model(), {}, instance_type(name)) for name in ("trn1.2xlarge", "inf2.8xlarge", "trn2.3xlarge")
    )
    assert trn1 == inf2
    assert differences(trn1, trn2) == (
        'core_generation: wanted "v2", found "v3"',
        "logical_core_size: wanted 1, found 2",
    )


def test_the_size_of_a_logical_core_changes_the_key() -> None:
    line, instance = image_line("nxdi-0.13"), instance_type("trn2.3xlarge")
    assert artifact(line, model(), {}, instance, 1).key != artifact(line, model(), {}, instance).key
    assert artifact(line, model(), {}, instance, 2).key == artifact(line, model(), {}, instance).key


def test_nested_differences_are_dotted_and_absent_inputs_are_nothing() -> None:
    sampling = {"on_device_sampling_config": {"dynamic": True, "global_topk": 256}}
    assert differences(usual(overrides=sampling), usual()) == (
        "neuron_config.context_encoding_buckets: wanted nothing, found [512, 1024]",
        "neuron_config.enable_bucketing: wanted nothing, found false",
        "neuron_config.on_device_sampling_config.dynamic: wanted true, found nothing",
        "neuron_config.on_device_sampling_config.global_topk: wanted 256, found nothing",
    )
    assert differences(usual(), usual()) == ()


def test_the_description_is_the_same_for_the_same_artifact_and_has_all_of_it() -> None:
    described = json.loads(usual().description())
    assert described["inputs"] == json.loads(json.dumps(dict(usual().inputs)))
    assert (described["key"], described["prefix"]) == (usual().key, usual().prefix)
    assert described["artifacts_variable"] == "NEURON_COMPILED_ARTIFACTS"
    assert usual().description() == usual(overrides=dict(reversed(OVERRIDES.items()))).description()


def test_the_description_names_the_files_of_the_ranks_where_the_checkpoint_is_sharded() -> None:
    assert json.loads(usual().description())["rank_files"] == []
    sharded = json.loads(usual(model(sharded_checkpoint=True)).description())
    assert sharded["rank_files"] == [f"weights/tp{rank}_sharded_checkpoint.safetensors" for rank in (0, 1)]


@pytest.mark.parametrize("name", ["../../other", "org/model/extra", "/model", "org/", "a@b", ""])
def test_an_id_that_no_path_can_hold_is_refused(name: str) -> None:
    with pytest.raises(ImpossibleInputError, match="found model id"):
        usual(replace(model(), id=name))


def test_a_revision_that_no_path_can_hold_is_refused() -> None:
    with pytest.raises(ImpossibleInputError, match="found revision 'refs/pr/1'"):
        usual(replace(model(), revision="refs/pr/1"))


def test_settings_that_are_no_json_are_refused() -> None:
    with pytest.raises(ImpossibleInputError, match="neuron_config is not JSON"):
        usual(overrides={"scale": float("nan")})
