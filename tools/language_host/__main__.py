"""The process that the engine starts: it prints its port and serves until it is interrupted or the engine is gone."""

import argparse
import signal
import sys
import threading

try:
    from tools.language_host.parent_process import call_when_parent_ends
    from tools.language_host.server import serve, version
except ModuleNotFoundError as error:
    sys.exit(
        f"pulumi-language-python: {sys.executable} has no package {error.name};"
        " set PULUMI_PYTHON_CMD to the Python of the project's virtual environment"
    )


def main() -> None:
    # The engine may pass further flags, such as --tracing: the address is what counts.
    parser = argparse.ArgumentParser(prog="pulumi-language-python")
    parser.add_argument("--version", action="store_true", help="print the version of the Pulumi SDK and exit")
    parser.add_argument("--tracing", help=argparse.SUPPRESS)
    parser.add_argument("engine_address", nargs="?", default="", help="where the engine listens, host:port")
    arguments = parser.parse_args()
    if arguments.version:
        print(version())
        return
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    call_when_parent_ends(stop.set)
    serve(arguments.engine_address, stop)


main()
