"""The configuration of kwokctl."""

from tools.control_plane.kwokctl import PROGRAMS, free_ports, render_config


def test_free_ports_are_all_different() -> None:
    assert len(set(free_ports(20))) == 20


def test_everything_listens_on_loopback_and_runs_our_programs() -> None:
    programs = {name: f"/tools/{name}" for name in PROGRAMS}
    options = render_config(programs, {"etcdPort": 30001})["options"]
    assert options["bindAddress"] == "127.0.0.1"
    assert options["etcdPort"] == 30001
    named = {value for key, value in options.items() if key.endswith("Binary")}
    assert named == {path for name, path in programs.items() if name != "kwokctl"}
