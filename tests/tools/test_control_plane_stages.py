"""The stages' durations. What they make of pods is tested on a real control plane, in tests/engine."""

import pytest

from neuron.startup import COLD, EXIT_SECONDS, SCHEDULING_SECONDS, WARM, StartUp
from tools.control_plane.nodes import Object
from tools.control_plane.stages import Simulation, render_stages, timeline


def template(simulation: Simulation, name: str) -> str:
    [stage] = [stage for stage in render_stages(simulation) if stage["metadata"]["name"] == name]
    return str(stage["spec"]["steps"][0]["patch"]["template"])


@pytest.mark.parametrize("start_up", [WARM, COLD, StartUp(prepare_seconds=5, server_seconds=7)])
@pytest.mark.parametrize("time_factor", [0.5, 1.0, 20.0])
def test_all_durations_are_divided_by_the_time_factor(start_up: StartUp, time_factor: float) -> None:
    text = template(Simulation(start_up, time_factor), "server-schedule")
    assert f"$scheduling := {SCHEDULING_SECONDS * 1000 / time_factor} " in text
    assert f"$prepare := {start_up.prepare_seconds * 1000 / time_factor} " in text
    assert f"$server := {start_up.server_seconds * 1000 / time_factor} " in text
    assert f"$second := {1000 / time_factor} " in text
    assert f"$exit := {EXIT_SECONDS * 1000 / time_factor} " in template(
        Simulation(start_up, time_factor), "server-terminate"
    )


def test_a_stage_changes_an_object_in_one_step_only() -> None:
    stages = render_stages(Simulation(WARM, 1))
    assert all(len(stage["spec"]["steps"]) == 1 for stage in stages)
    assert len({stage["metadata"]["name"] for stage in stages}) == len(stages)


def test_no_stage_waits_for_a_random_time() -> None:
    delays = [stage["spec"].get("delay", {}) for stage in render_stages(Simulation(WARM, 1))]
    assert all(set(delay) <= {"durationFrom"} for delay in delays)


def test_a_timeline_is_read_from_the_annotations_of_a_pod() -> None:
    pod: Object = {
        "metadata": {
            "annotations": {
                "simulation.neuron-serving/serving-at": "2026-01-01T00:00:01.500Z",
                "example.com/other": "2026",
            }
        }
    }
    [(key, moment)] = timeline(pod).items()
    assert key == "simulation.neuron-serving/serving-at"
    assert (moment.second, moment.microsecond) == (1, 500_000)
    assert timeline({"metadata": {}}) == {}
