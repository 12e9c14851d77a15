"""The environment in which the Pulumi CLI uses this checkout's tools and state, and nothing of the user's own.

`eval "$(make -s env)"` puts it into a shell, for plain `pulumi` commands.
"""

import contextlib
import os
import re
import secrets
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

from tools import toolchain as tools
from tools.errors import ToolchainError, report_error_line
from tools.toolchain import Toolchain
from tools.versions import ROOT, PinError

STATE_DIRECTORY = ROOT / ".local"
# Of Pulumi.yaml and the stack files: Pulumi writes into these, and the checkout stays clean.
PROJECT_COPY = STATE_DIRECTORY / "project"


def pulumi_environment(state_directory: Path, toolchain: Toolchain, kubeconfig: Path | None = None) -> dict[str, str]:
    """The variables to lay over os.environ for the Pulumi CLI. Makes the folders and the passphrase that they name.

    `state_directory` gets pulumi-home (plugins, credentials), state (the file backend) and passphrase. A passphrase
    that the user has set in the usual variables stays in force.
    """
    home = _private_directory(state_directory / "pulumi-home")
    state = _private_directory(state_directory / "state")
    _link_plugins(home / "plugins", toolchain)
    variables = {
        "PULUMI_HOME": str(home),
        "PULUMI_BACKEND_URL": state.as_uri(),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        # A missing plugin is an error to read, not a download to wait for.
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_DISABLE_REGISTRY_RESOLVE": "true",
        # Plugins come from PULUMI_HOME: the engine warns about each one that it finds on PATH.
        "PULUMI_IGNORE_AMBIENT_PLUGINS": "true",
        "PULUMI_PYTHON_CMD": sys.executable,
        "PATH": _path(toolchain),
    }
    if not {"PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE"} & os.environ.keys():
        variables["PULUMI_CONFIG_PASSPHRASE_FILE"] = str(_passphrase_file(state_directory / "passphrase"))
    if kubeconfig is not None:
        variables["KUBECONFIG"] = str(kubeconfig)
    return variables


def _private_directory(directory: Path) -> Path:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory.resolve()


def _link_plugins(directory: Path, toolchain: Toolchain) -> None:
    """Make the toolchain's plugins the ones in PULUMI_HOME: KIND-NAME-vVERSION/pulumi-KIND-NAME."""
    for tool in toolchain.tools:
        if not re.fullmatch(r"pulumi-\w+-.+", tool.name):
            continue
        plugin = tool.name.removeprefix("pulumi-")
        current = directory / f"{plugin}-v{tool.version}"
        for other in set(directory.glob(f"{plugin}-v*")) - {current}:
            shutil.rmtree(other)
        current.mkdir(parents=True, exist_ok=True)
        _replace_link(current / tool.name, tool.path)


def _replace_link(link: Path, target: Path) -> None:
    """At once, since an engine may be about to follow the link."""
    draft = link.with_name(f"{link.name}.{os.getpid()}")
    draft.symlink_to(target)
    draft.replace(link)


def _path(toolchain: Toolchain) -> str:
    first = [*map(str, toolchain.bin_directories), str(Path(sys.executable).parent)]
    return os.pathsep.join(dict.fromkeys([*first, *os.get_exec_path()]))


def _passphrase_file(file: Path) -> Path:
    """A random passphrase that only the user can read, made once and whole: the state's secrets depend on it."""
    if not file.exists():
        # mkstemp gives mode 0600; the link fails, unlike a rename, when another process was first.
        descriptor, draft = tempfile.mkstemp(dir=file.parent, prefix="passphrase-")
        with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
            handle.write(secrets.token_urlsafe(32))
        with contextlib.suppress(FileExistsError):
            Path(file).hardlink_to(draft)
        Path(draft).unlink()
    return file.resolve()


def main() -> int:
    """Print export lines; progress goes to standard error."""
    try:
        toolchain = tools.ensure(report=report_error_line)
        variables = pulumi_environment(STATE_DIRECTORY, toolchain)
    except (ToolchainError, PinError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for name, value in variables.items():
        print(f"export {name}={shlex.quote(value)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
