"""Run a Pulumi program: connect the SDK to the engine, run the user's code in a stack, report its errors.

Started by path, in the project's own virtual environment. The exit code says what the engine still has to tell the
user: 0 nothing, 32 nothing because the error is already shown, anything else "program exited with non-zero exit code".
"""

import argparse
import asyncio
import logging
import os
import runpy
import signal
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# Until there is a program that could clean up, an interrupt ends the process without a traceback of its imports.
_INTERRUPT_HANDLER = signal.getsignal(signal.SIGINT)
if _INTERRUPT_HANDLER is not signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

try:
    import pulumi
    import pulumi.runtime
except ImportError:
    traceback.print_exc()
    sys.exit(
        f"\nThe Pulumi SDK is not installed in the environment of {sys.executable}.\n"
        "Run `pulumi install`, or `pip install -r requirements.txt` inside the project's virtual environment."
    )

_ERROR_IS_SHOWN = 32
# An engine without a limit asks for the largest 32-bit integer; threads are only made when needed.
_THREADS_PER_OPERATION = 4


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    for name in ("monitor", "engine", "project", "stack", "organization", "root-directory"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--parallel", type=int, required=True)
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    return parser.parse_args()


def _configure(arguments: argparse.Namespace) -> None:
    config, secret_keys = pulumi.runtime.get_config_env(), pulumi.runtime.get_config_secret_keys_env()
    pulumi.runtime.set_all_config(config, secret_keys)
    pulumi.runtime.configure(
        pulumi.runtime.Settings(
            monitor=arguments.monitor,
            engine=arguments.engine,
            project=arguments.project,
            stack=arguments.stack,
            organization=arguments.organization or None,
            root_directory=arguments.root_directory,
            parallel=arguments.parallel,
            dry_run=arguments.dry_run,
        )
    )


def _main_file(program: str) -> Path:
    path = Path(program).resolve()
    return path / "__main__.py" if path.is_dir() else path


def _user_traceback(error: Exception, main_file: Path) -> str:
    """The traceback from the user's main file on: what lies above is this host and the SDK."""
    start = error.__traceback__
    while start is not None and Path(start.tb_frame.f_code.co_filename).resolve() != main_file:
        start = start.tb_next
    return "".join(traceback.format_exception(type(error), error, start or error.__traceback__))


def _run(program: str, loop: asyncio.AbstractEventLoop) -> int:
    main_file = _main_file(program)
    if not main_file.is_file():
        pulumi.log.error(f"unable to find main python program `{main_file.name}` in `{main_file.parent}`")
        return _ERROR_IS_SHOWN

    def user_program() -> None:
        runpy.run_path(program, run_name="__main__")

    try:
        loop.run_until_complete(pulumi.runtime.run_in_stack(user_program))
    except pulumi.RunError as error:
        pulumi.log.error(str(error))
        return 1
    except Exception as error:  # anything the user's program raises
        pulumi.log.error(f"Program failed with an unhandled exception:\n{_user_traceback(error, main_file)}")
        return _ERROR_IS_SHOWN
    return 0


def main() -> int:
    arguments = _arguments()
    _configure(arguments)
    sys.argv = [arguments.program, *arguments.arguments]
    # After a failure some futures of the graph stay unobserved; asyncio's complaints about them tell the user nothing.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    executor = ThreadPoolExecutor(max_workers=max(arguments.parallel, 1) * _THREADS_PER_OPERATION)
    loop.set_default_executor(executor)
    try:
        return _run(arguments.program, loop)
    finally:
        executor.shutdown(wait=True)
        loop.close()


def _main_or_interrupted() -> int:
    signal.signal(signal.SIGINT, _INTERRUPT_HANDLER)
    try:
        return main()
    except KeyboardInterrupt:
        # The engine interrupts a program when it gives up, and says why itself; a traceback would hide that.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
        raise


if __name__ == "__main__":
    sys.exit(_main_or_interrupted())
