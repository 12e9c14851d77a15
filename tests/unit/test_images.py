"""The image lines: arguments and environment, against the flags that each line's own guide names."""

import re

import pytest

from neuron.errors import ImpossibleInputError
from neuron.images import (
    IMAGE_LINES,
    ImageLine,
    compiler_settings,
    image_line,
    lines_for,
    model_arguments,
    rank_files,
    server_arguments,
)
from neuron.instances import FAMILIES
from tests.unit.builders import model

LINES = pytest.mark.parametrize("line", IMAGE_LINES.values(), ids=IMAGE_LINES.keys())


@LINES
def test_a_tag_names_vllm_and_the_sdk_and_does_not_move(line: ImageLine) -> None:
    match = re.fullmatch(r"[\d.]+-neuronx-py\d+-sdk(?P<sdk>[\d.]+)-ubuntu[\d.]+", line.tag)
    assert match is not None
    assert match["sdk"] == line.sdk


@LINES
def test_a_line_runs_on_known_families(line: ImageLine) -> None:
    assert line.families
    assert line.families <= FAMILIES


def test_only_the_v0_engine_is_told_its_device_and_takes_overrides_bare() -> None:
    overrides = {"enable_bucketing": False}
    arguments = {name: model_arguments(line, model(), overrides, "/model") for name, line in IMAGE_LINES.items()}
    assert {name for name, given in arguments.items() if "--device=neuron" in given} == {"v0-0.9.1"}
    assert arguments["v0-0.9.1"][-1] == '--override-neuron-config={"enable_bucketing":false}'
    assert arguments["nxdi-0.13"][-1] == '--additional-config={"override_neuron_config":{"enable_bucketing":false}}'
    assert arguments["plugin-0.24"][-1] == '--additional-config={"neuron_config":{"enable_bucketing":false}}'


def test_a_sharded_checkpoint_is_one_more_setting_of_the_compiler_on_the_lines_that_save_one() -> None:
    sharded, stated = model(sharded_checkpoint=True), {"enable_bucketing": False}
    able = {name for name, line in IMAGE_LINES.items() if line.saves_sharded_checkpoints}
    assert able == {"v0-0.9.1", "nxdi-0.13", "nxdi-0.16"}
    together = '{"enable_bucketing":false,"save_sharded_checkpoint":true}'
    v0, v1 = (model_arguments(image_line(name), sharded, stated, "/model")[-1] for name in ("v0-0.9.1", "nxdi-0.13"))
    assert v0 == f"--override-neuron-config={together}"
    assert v1 == f'--additional-config={{"override_neuron_config":{together}}}'
    with pytest.raises(ImpossibleInputError, match=r"a sharded checkpoint for line plugin-0\.24"):
        compiler_settings(image_line("plugin-0.24"), sharded, stated)
    assert stated == {"enable_bucketing": False}


def test_each_rank_has_a_file_of_its_own_where_the_checkpoint_is_sharded() -> None:
    assert rank_files(model(tensor_parallel=2)) == ()
    assert rank_files(model(tensor_parallel=2, sharded_checkpoint=True)) == (
        "weights/tp0_sharded_checkpoint.safetensors",
        "weights/tp1_sharded_checkpoint.safetensors",
    )


def test_only_a_line_that_has_the_flag_is_told_how_long_to_shut_down() -> None:
    assert server_arguments(image_line("plugin-0.24"), 30) == ("--port=8080", "--shutdown-timeout=30")
    assert server_arguments(image_line("nxdi-0.13"), None) == ("--port=8080",)


def test_the_plugin_line_runs_on_trainium2_alone() -> None:
    assert "plugin-0.24" not in lines_for("inf2") + lines_for("trn1")
    assert "plugin-0.24" in lines_for("trn2")


def test_an_unknown_line_names_the_known_ones() -> None:
    with pytest.raises(ImpossibleInputError, match=r"found 'v2'; known image lines: v0-0.9.1, "):
        image_line("v2")
