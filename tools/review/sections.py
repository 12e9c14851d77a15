"""The sections of a comment, each from the whole preview; an empty text where there is nothing to say."""

from collections.abc import Iterable

from neuron.instances import PRICE_BASIS
from neuron.quota import Verdict
from tools.review.capacity import Cost, cost, verdicts
from tools.review.changes import PropertyChange, property_changes, replacement_reasons
from tools.review.events import Diagnostic, PolicyResult, Preview, Step, type_of
from tools.review.markdown import block, code, details, table, text
from tools.review.masking import masked_text

# In the order in which a reviewer wants to see them.
OPERATIONS = {
    "replace": "replaced",
    "delete": "deleted",
    "update": "updated",
    "create": "created",
    "import": "imported",
}
_MOST_ENTRIES = 20
_LONGEST_MESSAGE = 700
_MOST_TRACEBACK_LINES = 40
_LAYER = "neuron-serving:index:"
_SERVING = f"{_LAYER}Serving"
_DEPLOYMENT = "kubernetes:apps/v1:Deployment"
_NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"
# The rule that reports what exceptions let pass, and how the messages of the pack go on after what and where.
_EXCEPTIONS_RULE = "policy-exceptions"
_WHY = "\nWhy:"
# What the engine says beside another message that tells why.
_REPETITIONS = ("an unhandled error occurred: program exited", "preview failed", "update failed")
_FORECAST = "next rollout: "


def problems(preview: Preview) -> str:
    """Errors, each line of one being a fault of its own where the program lists several."""
    return "\n\n".join(map(_problem, errors(preview)[:_MOST_ENTRIES]))


def errors(preview: Preview) -> list[Diagnostic]:
    """The errors that ended the preview early; none where a policy refuses, for then all was compared."""
    found = [one for one in preview.diagnostics if one.severity == "error"]
    telling = [one for one in found if not one.message.startswith(_REPETITIONS)]
    return telling or ([] if any(map(refuses, preview.policy_results)) else found)


def _problem(error: Diagnostic) -> str:
    first, *rest = masked_text(error.message).splitlines() or [""]
    if "Traceback" in error.message:
        lines = [first, *rest][-_MOST_TRACEBACK_LINES:]
        return f"> [!CAUTION]\n> {text(lines[-1])}\n\n{details('The whole message', block(lines))}"
    lines = [
        f"> [!CAUTION]\n> {text(first)}",
        *(f"> - {_short(line)}" for line in rest[:_MOST_ENTRIES] if line.strip()),
    ]
    if len(rest) > _MOST_ENTRIES:
        lines.append(f"> - and {len(rest) - _MOST_ENTRIES} more")
    return "\n".join(lines)


def refusals(preview: Preview) -> str:
    """What stops an update."""
    found = [one for one in preview.policy_results if refuses(one)]
    return f"#### Refused\n\n{_listed(map(_violation, found))}" if found else ""


def policies(preview: Preview) -> str:
    """What the rules say beside refusing."""
    if not preview.rules or errors(preview):
        return ""
    results = preview.policy_results
    excepted = [one for one in results if one.rule == _EXCEPTIONS_RULE]
    advice = [one for one in results if not (refuses(one) or one.is_unjudged or one in excepted)]
    unjudged = [one for one in results if one.is_unjudged]
    failed = {one.rule for one in [*filter(refuses, results), *advice]}
    count = (
        f"{len(preview.rules - failed - {one.rule for one in unjudged})} of {len(preview.rules | failed)} rules passed"
    )
    parts = [f"#### Policies\n\n{count}."]
    if advice:
        parts.append(f"Advisory:\n{_listed(_violation(one) for one in advice)}")
    if excepted:
        parts.append(f"Excepted:\n{_listed(_violation(one) for one in excepted)}")
    if unjudged:
        entries = _listed(
            f"{code(one.rule)}: {_short(one.message.partition('during preview: ')[2])}" for one in unjudged
        )
        parts.append(details(f"{len(unjudged)} not judged yet: the update judges what it then knows", entries))
    return "\n\n".join(parts)


def refuses(result: PolicyResult) -> bool:
    """Whether an update would be refused."""
    return result.level == "mandatory"


def _violation(result: PolicyResult) -> str:
    """A rule's finding: what and where, then the fix; why stands on the rule's page. The first line is its title."""
    what, _, rest = masked_text(result.message).partition(_WHY)
    what = what.partition("\n")[2] or what
    fix = rest.partition("\nFix: ")[2]
    return f"{code(result.rule)} {_short(what)}" + (f"<br>Fix: {_short(fix)}" if fix else "")


def lost(preview: Preview) -> str:
    """What is replaced or deleted, with the reason."""
    steps = [step for step in in_order(preview.steps) if step.operation in ("replace", "delete")]
    if not steps:
        return ""
    rows = [[OPERATIONS[step.operation], _resource(step), _reason(step)] for step in steps[:_MOST_ENTRIES]]
    more = f"\n\nand {len(steps) - _MOST_ENTRIES} more" if len(steps) > _MOST_ENTRIES else ""
    return f"#### Replaced and deleted\n\n{table(['', 'resource', 'because'], rows)}{more}"


def _reason(step: Step) -> str:
    if step.operation == "delete":
        kept = ", but kept in the cloud (retain on delete)" if step.old and step.old.retained else ""
        return f"no longer in the program{kept}"
    reasons = replacement_reasons(step)
    return "<br>".join(_change(one) for one in reasons[:_MOST_ENTRIES]) or "the provider gives no reason"


def _change(change: PropertyChange) -> str:
    if change.old is None and change.new is None:
        return code(change.path)
    return f"{code(change.path)}: {_value(change.old)} to {_value(change.new)}"


def _value(value: str | None) -> str:
    return "nothing" if value is None else code(value)


def outage(preview: Preview) -> str:
    """What the serving layers forecast, and whether this change starts such a rollout."""
    forecasts = [
        one for one in preview.diagnostics if type_of(one.urn) == _SERVING and one.message.startswith(_FORECAST)
    ]
    lines = [f"{code(_name(one.urn))}: {_rollout(preview, one)}" for one in sorted(forecasts, key=lambda one: one.urn)]
    moved = [step for step in preview.steps if step.type == _NODE_GROUP and step.operation == "replace"]
    lines += [
        f"the nodes of {code(step.name)} are replaced: all its pods move, which no forecast covers"
        for step in in_order(moved)
    ]
    return f"#### Outage\n\n{_listed(lines)}" if lines else ""


def _rollout(preview: Preview, forecast: Diagnostic) -> str:
    how = text(forecast.message.removeprefix(_FORECAST))
    operations = {
        step.operation: step
        for step in preview.steps
        if step.type == _DEPLOYMENT and step.name == _name(forecast.urn) and step.changes
    }
    if "create" in operations:
        return f"made by this change; later rollouts: {how}"
    if any(_restarts(step) for step in operations.values()):
        return f"**rolled out by this change**: {how}"
    return f"not touched; its next rollout: {how}"


def _restarts(step: Step) -> bool:
    return any(change.path.startswith("spec.template.") for change in property_changes(step))


def notes(preview: Preview) -> str:
    """What else the layers say of themselves, such as the AMI release of a node group."""
    said = [
        one.message
        for one in preview.diagnostics
        if one.severity == "info" and type_of(one.urn).startswith(_LAYER) and not one.message.startswith(_FORECAST)
    ]
    return f"#### Notes\n\n{_listed(map(_short, sorted(said)))}" if said else ""


def quota(preview: Preview) -> str:
    """The sum of vCPUs for each quota that the stack needs, and whether it fits."""
    before = {one.bucket: one for one in verdicts(preview, "before")}
    after = verdicts(preview, "after")
    lines = [f"{_fit(one)} {code(one.sum)}{_earlier(one, before.get(one.bucket))}" for one in after]
    return f"#### Capacity and quota\n\n{_listed(lines)}" if lines else ""


def _fit(verdict: Verdict) -> str:
    words = {True: "fits:", False: "**does not fit:**", None: "quota not declared in the stack file:"}
    return words[verdict.fits]


def _earlier(now: Verdict, before: Verdict | None) -> str:
    if before is None or before.needed_vcpus == now.needed_vcpus:
        return ""
    return f" (before: {before.needed_vcpus})"


def costs(preview: Preview) -> str:
    """What the accelerator nodes cost before and after."""
    before, after = cost(preview, "before"), cost(preview, "after")
    if not (before.nodes or after.nodes):
        return ""
    names = sorted({one.name for one in (*before.nodes, *after.nodes)})
    rows = [[code(name), _nodes(before, name), _nodes(after, name)] for name in names]
    rows.append(["**together**", _usd(before.usd_per_hour), f"**{_usd(after.usd_per_hour)}**"])
    notes = [f"Accelerator nodes at their largest, {PRICE_BASIS}. Not counted: control plane, disks, traffic"]
    notes += [f"; {text(one)}" for one in after.others]
    notes += [f"; {text(one)}, which others made" for one in after.existing]
    return f"#### Cost per hour\n\n{table(['node group', 'before', 'after'], rows)}\n\n{''.join(notes)}."


def _nodes(total: Cost, name: str) -> str:
    """A node group's price; none is known of what is not bought on demand, nor of types that have no such price."""
    for one in total.nodes:
        if one.name == name:
            price = "no price known" if one.usd_per_hour is None else _usd(one.usd_per_hour)
            return f"{price} ({one.description})"
    return "none"


def _usd(amount: float) -> str:
    return f"{amount:.2f} USD"


def warnings(preview: Preview) -> str:
    """What program, providers and engine warn of."""
    found = [one for one in preview.diagnostics if one.severity == "warning"]
    return f"#### Warnings\n\n{_listed(_short(one.message) for one in found)}" if found else ""


def in_order(steps: Iterable[Step]) -> list[Step]:
    """The steps in the order of their weight."""
    order = list(OPERATIONS)
    return sorted(steps, key=lambda step: (order.index(step.operation) if step.operation in order else 9, step.urn))


def _listed(entries: Iterable[str]) -> str:
    lines = list(entries)
    shown = [f"- {line}" for line in lines[:_MOST_ENTRIES]]
    if len(lines) > _MOST_ENTRIES:
        shown.append(f"- and {len(lines) - _MOST_ENTRIES} more")
    return "\n".join(shown)


def _short(message: str) -> str:
    """A message in one line, cut where it is very long."""
    line = " ".join(masked_text(message).split())
    return text(line if len(line) <= _LONGEST_MESSAGE else f"{line[:_LONGEST_MESSAGE]}...")


def _resource(step: Step) -> str:
    return f"{code(step.name)} ({text(step.type.rpartition(':')[2])})"


def _name(urn: str) -> str:
    return urn.rpartition("::")[2]
