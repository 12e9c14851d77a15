"""The environment for the Pulumi CLI."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tools import environment
from tools import toolchain as toolchain_module
from tools.environment import pulumi_environment
from tools.toolchain import FoundTool, Toolchain


@pytest.fixture
def toolchain(tmp_path: Path) -> Toolchain:
    folder = tmp_path / "cache" / "bin"
    names = ("pulumi", "pulumi-resource-kubernetes", "pulumi-language-python")
    return Toolchain(tuple(FoundTool(name, folder / name, "4.25.0", "cache") for name in names))


@pytest.fixture(autouse=True)
def no_passphrase(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE", raising=False)
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE_FILE", raising=False)


def test_state_home_and_plugins_are_the_projects_own(tmp_path: Path, toolchain: Toolchain) -> None:
    variables = pulumi_environment(tmp_path / ".local", toolchain)
    assert variables["PULUMI_HOME"] == str(tmp_path / ".local" / "pulumi-home")
    assert variables["PULUMI_BACKEND_URL"] == f"file://{tmp_path}/.local/state"
    plugins = tmp_path / ".local" / "pulumi-home" / "plugins"
    provider = plugins / "resource-kubernetes-v4.25.0" / "pulumi-resource-kubernetes"
    assert provider.readlink() == toolchain.path("pulumi-resource-kubernetes")
    assert sorted(folder.name for folder in plugins.iterdir()) == [
        "language-python-v4.25.0",
        "resource-kubernetes-v4.25.0",
    ]


def test_the_plugins_of_an_earlier_toolchain_are_replaced(tmp_path: Path, toolchain: Toolchain) -> None:
    plugins = tmp_path / ".local" / "pulumi-home" / "plugins"
    (plugins / "resource-kubernetes-v4.24.0").mkdir(parents=True)
    (plugins / "resource-aws-v7.0.0").mkdir()
    pulumi_environment(tmp_path / ".local", toolchain)
    pulumi_environment(tmp_path / ".local", toolchain)
    assert not (plugins / "resource-kubernetes-v4.24.0").exists()
    assert (plugins / "resource-aws-v7.0.0").exists()


def test_the_tools_and_the_virtual_environment_come_first_on_path(tmp_path: Path, toolchain: Toolchain) -> None:
    variables = pulumi_environment(tmp_path, toolchain)
    folders = variables["PATH"].split(os.pathsep)
    assert folders[:2] == [str(tmp_path / "cache" / "bin"), str(Path(sys.executable).parent)]
    assert set(os.get_exec_path()) <= set(folders)
    assert variables["PULUMI_PYTHON_CMD"] == sys.executable


def test_the_passphrase_is_random_private_and_made_once(tmp_path: Path, toolchain: Toolchain) -> None:
    first = Path(pulumi_environment(tmp_path / "one", toolchain)["PULUMI_CONFIG_PASSPHRASE_FILE"])
    content = first.read_text()
    assert stat.S_IMODE(first.stat().st_mode) == 0o600
    assert len(content) >= 32
    pulumi_environment(tmp_path / "one", toolchain)
    assert first.read_text() == content
    other = Path(pulumi_environment(tmp_path / "two", toolchain)["PULUMI_CONFIG_PASSPHRASE_FILE"])
    assert other.read_text() != content
    assert [file.name for file in first.parent.glob("passphrase*")] == ["passphrase"]


@pytest.mark.parametrize("name", ["PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE"])
def test_a_passphrase_of_the_user_stays(
    tmp_path: Path, toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "theirs")
    assert "PULUMI_CONFIG_PASSPHRASE_FILE" not in pulumi_environment(tmp_path, toolchain)
    assert not (tmp_path / "passphrase").exists()


def test_the_kubeconfig_is_set_only_when_given(tmp_path: Path, toolchain: Toolchain) -> None:
    assert "KUBECONFIG" not in pulumi_environment(tmp_path, toolchain)
    variables = pulumi_environment(tmp_path, toolchain, kubeconfig=tmp_path / "kubeconfig")
    assert variables["KUBECONFIG"] == str(tmp_path / "kubeconfig")


def test_a_shell_can_evaluate_what_is_printed(
    tmp_path: Path, toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    state = tmp_path / "with space and 'quote'"
    monkeypatch.setattr(environment, "STATE_DIRECTORY", state)
    monkeypatch.setattr(toolchain_module, "ensure", lambda report: (report("progress"), toolchain)[1])
    assert environment.main() == 0
    printed = capsys.readouterr()
    assert printed.err == "progress\n"
    shell = subprocess.run(
        ["sh", "-c", f'{printed.out}\nprintf %s "$PULUMI_HOME"'], capture_output=True, text=True, check=True
    )
    assert shell.stdout == str(state / "pulumi-home")
