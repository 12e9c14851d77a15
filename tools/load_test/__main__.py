"""The command: `python -m tools.load_test URL PROFILE`."""

import argparse
import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

from tools.errors import report_line
from tools.load_test.profiles import PROFILES, Profile
from tools.load_test.report import Measured, document, table

_KEY_VARIABLE = "LOAD_TEST_API_KEY"
_NO_KEY = "none"
_SECONDS = 600
_RESULTS = Path(".local/load-test")


def main() -> int:
    """Measure, print the table, write table, JSON and plot."""
    parser = argparse.ArgumentParser(prog="python -m tools.load_test", description="load on a model server")
    parser.add_argument("url", help="of the server, as in http://127.0.0.1:8080")
    parser.add_argument("profile", choices=PROFILES, metavar="profile", help=", ".join(PROFILES))
    parser.add_argument("--seconds", type=float, default=_SECONDS, help="nothing is sent after these; default 600")
    parser.add_argument("--results", type=Path, default=_RESULTS, help="folder of table, JSON and plot")
    given = parser.parse_args()
    base_url = _base_url(given.url)
    if base_url is None:
        return _fail(f"URL: found {given.url}; allowed: http://host:port or https://host; fix: add what is missing")
    try:
        # Only in the environment of requirements-load-test.txt.
        from tools.load_test import measure
    except ModuleNotFoundError as error:
        return _fail(f"{error.name} is not installed; use make load-test URL=... PROFILE=...")
    key = os.environ.get(_KEY_VARIABLE) or _NO_KEY
    profile = PROFILES[given.profile]
    results: list[Measured] = []
    try:
        target = measure.Target(base_url, key, measure.find_model(base_url, key))
        report_line(f"{target.model} at {base_url}; profile {profile.name}: {profile.note}")
        for result in measure.measure(target, profile, given.seconds, report_line):
            results.append(result)
            _write(given.results, profile, target.base_url, target.model, results)
    except measure.LoadTestError as error:
        return _fail(str(error))
    except OSError as error:
        return _fail(f"results: {error}; name a folder that can be written with --results")
    except KeyboardInterrupt:
        return 130
    # Below what LLMeter drew for the terminal.
    print(f"\n{table(profile, results)}")
    print(f"written: {given.results / profile.name}.txt, .json, .svg")
    return 0 if any(result.level.mean_seconds for result in results) else _fail("no request was answered")


def _base_url(url: str) -> str | None:
    """The address below which the OpenAI interface is; None for what is no URL of a server."""
    try:
        parts = urlsplit(url)
        is_server = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    if not is_server:
        return None
    return url.rstrip("/").removesuffix("/v1") + "/v1"


def _write(folder: Path, profile: Profile, url: str, model: str, results: list[Measured]) -> None:
    """Write what there is so far: an interrupted test keeps its finished levels."""
    from tools.load_test import plot

    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{profile.name}.txt").write_text(f"{table(profile, results)}\n")
    (folder / f"{profile.name}.json").write_text(f"{document(profile, url, model, results)}\n")
    plot.save(profile, [result.level for result in results], folder / f"{profile.name}.svg")


def _fail(line: str) -> int:
    print(f"error: {line}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
