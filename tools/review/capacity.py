"""What the nodes of a stack come to before and after: vCPUs of the account's quota, and price."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from neuron.errors import ImpossibleInputError
from neuron.quota import Bucket, NodeGroupCapacity, Quota, Verdict, check_quotas, declared_quotas, needs
from policy.capacity import Capacity, capacity
from policy.resources import Resource, Stack
from policy.values import Node
from tools.review.events import Preview, State, Step, parent_types
from tools.review.masking import masked

_NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"
_LAUNCH_TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
_EXISTING = "neuron-serving:index:ExistingNodeGroup"
When = Literal["before", "after"]


@dataclass(frozen=True)
class Nodes:
    """A node group of Neuron nodes at its largest, priced on demand. None: no price is known for how it is bought."""

    name: str
    description: str
    usd_per_hour: float | None


@dataclass(frozen=True)
class Cost:
    """The node groups that have a price or might have; `others` and `existing` are named and not counted."""

    nodes: tuple[Nodes, ...]
    others: tuple[str, ...]
    existing: tuple[str, ...]

    @property
    def usd_per_hour(self) -> float:
        """The sum of what has a price."""
        return sum(one.usd_per_hour or 0 for one in self.nodes)


def verdicts(preview: Preview, when: When) -> tuple[Verdict, ...]:
    """What the stack needs of each quota, against the quotas that its stack file declares."""
    found = _capacity(preview, when)
    try:
        needed = needs(found.groups, found.pools)
    except ImpossibleInputError:
        return ()
    return check_quotas(needed, _declared(preview))


def cost(preview: Preview, when: When) -> Cost:
    """The stack's nodes an hour."""
    groups = _capacity(preview, when).groups
    counted = {group.name for group in groups}
    others = [
        f"{step.name} ({', '.join(_instance_types(state))})"
        for step, state in _states(preview, when)
        if step.type == _NODE_GROUP and step.name not in counted
    ]
    existing = [
        f"{step.name} ({int(state.inputs['nodes'])} x {state.inputs['instanceType']})"
        for step, state in _states(preview, when)
        if step.type == _EXISTING
    ]
    return Cost(tuple(map(_priced, groups)), tuple(others), tuple(existing))


def _priced(group: NodeGroupCapacity) -> Nodes:
    price = group.instance.price_usd_per_hour if group.purchase == "on-demand" else None
    description = f"{group.maximum_nodes} x {group.instance.name}, {group.purchase}"
    return Nodes(group.name, description, None if price is None else price * group.maximum_nodes)


def _capacity(preview: Preview, when: When) -> Capacity:
    states = list(_states(preview, when))
    templates = [(step, state) for step, state in states if step.type == _LAUNCH_TEMPLATE]
    return capacity(Stack(tuple(_resource(step, state, templates) for step, state in states)))


def _states(preview: Preview, when: When) -> Iterator[tuple[Step, State]]:
    for step in preview.steps:
        state = step.old if when == "before" else step.new
        # A replacement is one step; what is deleted has no new state, but some engines repeat the old one.
        if state is not None and not (when == "after" and step.operation == "delete"):
            yield step, state


def _resource(step: Step, state: State, templates: list[tuple[Step, State]]) -> Resource:
    """The resource as the rules see it. Events name no dependencies: a group's template is its component's."""
    own = tuple(
        _bare(template, at)
        for template, at in templates
        if parent_types(template.urn) == parent_types(step.urn) and template.name == step.name
    )
    bare = _bare(step, state)
    return Resource(bare.type, bare.name, bare.urn, bare.props, dependencies={"launchTemplate": own})


def _bare(step: Step, state: State) -> Resource:
    return Resource(step.type, step.name, step.urn, Node(masked(state.inputs)))


def _instance_types(state: State) -> list[str]:
    return [str(name) for name in state.inputs.get("instanceTypes") or ["of its launch template"]]


def _declared(preview: Preview) -> dict[Bucket, Quota]:
    """The quotas of the stack file, by bucket."""
    raw = next((value for key, value in preview.config.items() if key.partition(":")[2] == "quotas"), "{}")
    try:
        return declared_quotas(json.loads(raw), "declared in the stack file")
    except (ValueError, RecursionError):
        return {}
