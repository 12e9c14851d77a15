"""Writes docs/iam: `python -m tools.iam`; with `--check` it fails where a file is stale."""

import argparse
import sys

from tools.iam.policies import PREVIEW, document, up_statements
from tools.versions import ROOT

_COMMAND = "python -m tools.iam"
FOLDER = ROOT / "docs" / "iam"


def files() -> dict[str, str]:
    """The text of every file, by name."""
    return {"preview.json": document(PREVIEW), "up.json": document(up_statements())}


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog=_COMMAND, description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file is stale")
    check = parser.parse_args().check
    stale = [name for name, text in files().items() if not _holds(name, text)]
    for name in stale:
        print(f"docs/iam/{name} is stale; run `{_COMMAND}`" if check else f"docs/iam/{name}")
        if not check:
            FOLDER.mkdir(exist_ok=True)
            (FOLDER / name).write_text(files()[name])
    return 1 if check and stale else 0


def _holds(name: str, text: str) -> bool:
    path = FOLDER / name
    return path.exists() and path.read_text() == text


if __name__ == "__main__":
    sys.exit(main())
