"""Texts of others inside GitHub's markdown: they stay texts, whatever is written in them."""

import re
from collections.abc import Iterable

_SPECIAL = re.compile(r"[\\`*_\[\]<>|~&$]")
# Mentions and references are found in the rendered text, where no escape is left: an invisible space parts them.
_REFERENCE = re.compile(r"([@#])(?=\w)")
_INVISIBLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u200b-\u200f\u202a-\u202e\u2066-\u2069]")


def text(value: str) -> str:
    """A value in one line of running text: no markup, HTML, mention or reference comes of it."""
    return _REFERENCE.sub("\\1\u200b", _SPECIAL.sub(r"\\\g<0>", _line(value)))


def code(value: str) -> str:
    """A value as code, in a line or in a table."""
    line = _line(value).replace("|", "\\|") or " "
    fence = "`" * (_longest_run(line) + 1)
    padding = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{padding}{line}{padding}{fence}"


def block(lines: Iterable[str], language: str = "") -> str:
    """Lines as a block of code."""
    content = "\n".join(_line(line, keep_spaces=True) for line in lines)
    fence = "`" * max(3, _longest_run(content) + 1)
    return f"{fence}{language}\n{content}\n{fence}"


def table(heading: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of cells that are markdown already."""
    titles = list(heading)
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def details(summary: str, body: str) -> str:
    """A part that is folded; the empty lines make GitHub read its body as markdown."""
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"


def _line(value: str, *, keep_spaces: bool = False) -> str:
    visible = _INVISIBLE.sub("", value.replace("\r", "\n"))
    return visible.replace("\n", " ") if keep_spaces else " ".join(visible.split())


def _longest_run(value: str) -> int:
    return max((len(run) for run in re.findall(r"`+", value)), default=0)
