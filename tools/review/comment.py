"""A preview as a comment of a pull request: what needs a decision first, all else folded."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from tools.review import sections
from tools.review.changes import property_changes
from tools.review.events import Preview, Step
from tools.review.markdown import block, code, details, text
from tools.review.masking import masked_text

# GitHub refuses a longer body; counted in bytes, which are no fewer than its characters.
LONGEST_BYTES = 65_536
_REMEDY = "`make preview` prints all of it"
_SECTIONS = (
    sections.problems,
    sections.refusals,
    sections.lost,
    sections.outage,
    sections.quota,
    sections.costs,
    sections.policies,
    sections.warnings,
    sections.notes,
)


@dataclass(frozen=True)
class Run:
    """What is known beside the events: the stack, pulumi's exit code and last lines, and what stood in for what."""

    stack: str
    exit_code: int
    last_lines: Sequence[str] = ()
    notice: str = ""


def marker(stack: str) -> str:
    """The first line of a stack's comment, invisible on the page, by which the comment is found to be edited."""
    return f"<!-- neuron-serving preview of {stack} -->"


def render(preview: Preview, run: Run) -> str:
    """The comment, no longer than GitHub takes, without anything secret."""
    parts = [
        marker(run.stack),
        _heading(preview, run),
        *filter(None, [text(run.notice), *(section(preview) for section in _SECTIONS), _ending(preview, run)]),
    ]
    return _fitted(parts, _differences(preview))


def _heading(preview: Preview, run: Run) -> str:
    counts = preview.counts
    changes = [
        f"{counts[operation]} {word}" for operation, word in sections.OPERATIONS.items() if counts.get(operation)
    ]
    count = f"**{', '.join(changes) or 'no changes'}**, {counts.get('same', 0)} unchanged"
    is_whole = preview.counts and not sections.errors(preview)
    compared = count if is_whole else "The preview ended early: not all resources were compared."
    return f"### Preview of {code(run.stack)}: {_outcome(preview, run)}\n\n{compared}"


def _outcome(preview: Preview, run: Run) -> str:
    refusals = len({result.rule for result in preview.policy_results if sections.refuses(result)})
    if refusals:
        return f"refused by {refusals} {'policy' if refusals == 1 else 'policies'}"
    return "can be applied" if run.exit_code == 0 else "failed"


def _ending(preview: Preview, run: Run) -> str:
    """The end of pulumi's own output, where it failed and the events do not say why."""
    refused = any(map(sections.refuses, preview.policy_results))
    if run.exit_code == 0 or refused or sections.errors(preview):
        return ""
    return f"Pulumi ended with exit code {run.exit_code}:\n\n{block(map(masked_text, run.last_lines))}"


def _differences(preview: Preview) -> list[str]:
    """For each resource that changes, its properties as lines of a diff; none of a preview that ended early."""
    if sections.errors(preview):
        return []
    return ["\n".join(_diff(step)) for step in sections.in_order(preview.steps) if step.changes]


def _diff(step: Step) -> Iterator[str]:
    yield f"@@ {sections.OPERATIONS.get(step.operation, step.operation)}: {step.type} {step.name} @@"
    for change in property_changes(step):
        forced = " (forces replacement)" if change.forces_replacement and step.operation == "replace" else ""
        if change.old is not None:
            yield f"- {change.path}: {change.old}"
        if change.new is not None:
            yield f"+ {change.path}: {change.new}{forced}"


def _fitted(parts: Sequence[str], differences: Sequence[str]) -> str:
    """The parts and as many differences as there is room for."""
    head = "\n\n".join(parts)
    sizes = accumulate(_bytes(one) + 1 for one in differences)
    most = sum(1 for size in sizes if size <= LONGEST_BYTES)
    for count in range(most, 0, -1):
        whole = f"{head}\n\n{_folded(differences, count)}\n"
        if _bytes(whole) <= LONGEST_BYTES:
            return whole
    if not differences and _bytes(head) < LONGEST_BYTES:
        return f"{head}\n"
    note = f"\n\nThis is too long for a comment: {_REMEDY}.\n"
    return _cut(head, LONGEST_BYTES - _bytes(note)) + note


def _folded(differences: Sequence[str], count: int) -> str:
    left = len(differences) - count
    note = f"\n\n{left} more do not fit into a comment: {_REMEDY}." if left else ""
    lines = "\n".join(differences[:count]).splitlines()
    return details("Full diff", f"{block(lines, 'diff')}{note}")


def _cut(markdown: str, length_bytes: int) -> str:
    """Whole lines, so that no code or table is left open in the middle of one."""
    if _bytes(markdown) <= length_bytes:
        return markdown
    kept = markdown.encode()[:length_bytes].decode(errors="ignore")
    return kept.rpartition("\n")[0]


def _bytes(markdown: str) -> int:
    return len(markdown.encode())
