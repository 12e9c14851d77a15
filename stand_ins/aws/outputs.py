"""Names, ids and outputs that AWS would give. They follow from URN and inputs: the same program, the same values."""

import collections.abc
import hashlib
import json
import typing
from collections.abc import Mapping
from dataclasses import dataclass

from stand_ins import CONTROL_PLANE_VARIABLE, control_plane_kubeconfig
from stand_ins.aws import schema
from stand_ins.aws.errors import StandInError
from stand_ins.aws.facts import ACCOUNT, DEFAULTS, NAME_PREFIXES, NAME_PROPERTIES, facts
from stand_ins.aws.schema import DEFAULTS_KEY
from stand_ins.aws.values import UNKNOWN, Properties, Value, reveal
from stand_ins.kubeconfig import read_access

_CLUSTER = "aws:eks/cluster:Cluster"
# As many as the real plugin's names end with.
_NAME_DIGITS = 7


@dataclass(frozen=True)
class Scope:
    """Where the provider works. `default_tags` go to every resource that has tags."""

    region: str
    default_tags: Mapping[str, Value]

    @property
    def partition(self) -> str:
        return "aws-cn" if self.region.startswith("cn-") else "aws"


def with_defaults(token: str, urn: str, new: Properties, old: Properties) -> Properties:
    """The inputs with a name and other defaults of the provider, which are noted as such and kept from `old`."""
    inputs = {key: value for key, value in new.items() if value is not None}
    defaults = dict(DEFAULTS.get(token, {}))
    name_property = name_property_of(token)
    if name_property and f"{name_property}Prefix" not in inputs:
        name = _Digits.of(urn, inputs)
        defaults[name_property] = f"{NAME_PREFIXES.get(token, '')}{_logical_name(token, urn)}-{name:{_NAME_DIGITS}}"
    earlier = old.get(DEFAULTS_KEY, [])
    assert isinstance(earlier, list)
    kept = {name: old[name] for name in earlier if name in old}
    added = {name: kept.get(name, value) for name, value in defaults.items() if name not in inputs}
    return {**inputs, **added, DEFAULTS_KEY: sorted(added)}


def name_property_of(token: str) -> str | None:
    """The property that the provider makes a name for: an optional `name`, or what the table says."""
    inputs = schema.known_resource(token).inputs
    candidate = NAME_PROPERTIES.get(token, "name")
    is_optional_text = schema.properties(inputs).get(candidate) is str and candidate not in schema.required(inputs)
    return candidate if is_optional_text else None


def preview(token: str, inputs: Properties, scope: Scope) -> Properties:
    """The outputs of a resource that is still to be made: what the inputs do not tell is unknown."""
    outputs: Properties = dict.fromkeys(_expected(token), UNKNOWN)
    outputs |= {name: _unknown(template) for name, template in facts(token).outputs.items()}
    return _with_known(outputs, token, inputs, scope)


def create(token: str, urn: str, inputs: Properties, scope: Scope) -> tuple[str, Properties]:
    """The id and the outputs of a new resource.

    Raises:
        StandInError: a cluster without a control plane to play it.
    """
    digits = _Digits.of(urn, inputs)
    revealed = reveal(inputs)
    assert isinstance(revealed, dict)
    context = _context(token, digits, revealed, scope)
    if token == _CLUSTER:
        context |= _control_plane(urn)
    context["id"] = _rendered(facts(token).id, context)
    context["arn"] = _rendered(facts(token).arn, context)
    outputs: Properties = {name: _generic(name, kind, context) for name, kind in _expected(token).items()}
    outputs |= {name: _rendered(template, context) for name, template in facts(token).outputs.items()}
    return str(context["id"]), _with_known(outputs, token, inputs, scope)


def update(token: str, old_outputs: Properties, old_inputs: Properties, new: Properties, scope: Scope) -> Properties:
    """The outputs after an update in place: what AWS computed stays, but for what it counts on."""
    optional = old_inputs.keys() - new.keys() - _expected(token).keys()
    outputs = {name: value for name, value in old_outputs.items() if name not in optional}
    outputs |= {name: _computed(outputs.get(name), given) for name, given in old_inputs.items() if name in new}
    outputs = _with_known(outputs, token, new, scope)
    changed = {name for name in old_inputs.keys() | new.keys() if old_inputs.get(name) != new.get(name)}
    if changed - {"tags", DEFAULTS_KEY}:
        for name in facts(token).revised:
            count = outputs[name]
            outputs[name] = count + 1 if isinstance(count, int | float) else UNKNOWN
    return outputs


class _Digits(str):
    """Digits of which a template takes as many as its format says, as in {hex:17}."""

    __slots__ = ()

    def __format__(self, count: str) -> str:
        return self[: int(count)]

    @classmethod
    def of(cls, urn: str, inputs: Properties) -> "_Digits":
        """Of a resource. They differ after a replacement, which has other inputs under the same URN."""
        text = json.dumps([urn, reveal(inputs)], sort_keys=True)
        return cls(hashlib.sha256(text.encode()).hexdigest())


def _logical_name(token: str, urn: str) -> str:
    name = urn.rpartition("::")[2]
    # Bucket names have no capitals.
    return name.lower() if NAME_PROPERTIES.get(token) == "bucket" else name


def _context(token: str, digits: _Digits, inputs: Mapping[str, Value], scope: Scope) -> dict[str, Value]:
    """What templates may name."""
    kind = token.rpartition(":")[2]
    context: dict[str, Value] = {
        **inputs,
        "hex": digits,
        "number": _Digits(int(digits, 16)),
        "region": scope.region,
        "partition": scope.partition,
        "account": ACCOUNT,
        "service": token.split(":")[1].partition("/")[0],
        "kind": kind[0].lower() + kind[1:],
    }
    name = name_property_of(token)
    if name and f"{name}Prefix" in inputs:
        context[name] = f"{inputs[f'{name}Prefix']}{digits:{_NAME_DIGITS}}"
    return context


def _with_known(outputs: Properties, token: str, inputs: Properties, scope: Scope) -> Properties:
    """Outputs with those over them that repeat inputs, or follow from them and the provider."""
    tags = inputs.get("tags", {})
    all_tags = {**scope.default_tags, **tags} if isinstance(tags, dict) else tags
    known = {"region": scope.region, **inputs, "tagsAll": all_tags}
    declared = schema.known_resource(token).outputs
    return {**outputs, **{name: _overlay(outputs.get(name), known[name]) for name in declared if name in known}}


def _expected(token: str) -> Mapping[str, object]:
    """The outputs that always have a value, with their types."""
    known = schema.known_resource(token)
    return {name: known.outputs[name] for name in known.always_present}


def _rendered(template: Value, context: Mapping[str, Value]) -> Value:
    if isinstance(template, str):
        return template.format_map(context)
    if isinstance(template, dict):
        return {key: _rendered(item, context) for key, item in template.items()}
    if isinstance(template, list):
        return [_rendered(item, context) for item in template]
    return template


def _unknown(template: Value) -> Value:
    return {key: _unknown(item) for key, item in template.items()} if isinstance(template, dict) else UNKNOWN


def _generic(name: str, kind: object, context: Mapping[str, Value]) -> Value:
    """A value of the right form for an output that the table does not have."""
    if name in context and name not in ("id", "hex", "number", "kind", "service"):
        return context[name]
    empty = {bool: False, int: 0, float: 0, str: f"stand-in-{name}-{context['hex']:8}"}
    form = typing.get_origin(kind) or kind
    if form in (collections.abc.Sequence, list):
        return []
    return empty.get(form, {}) if isinstance(form, type) else {}


def _overlay(computed: Value, given: Value) -> Value:
    """An object with the parts that AWS computed, over which the given ones win."""
    if isinstance(computed, dict) and isinstance(given, dict):
        return {**computed, **{key: _overlay(computed.get(key), item) for key, item in given.items()}}
    return given


def _computed(output: Value, given: Value) -> Value:
    """The parts of an output that were not given."""
    if not isinstance(output, dict) or not isinstance(given, dict):
        return None
    return {key: item for key, item in output.items() if key not in given}


def _control_plane(urn: str) -> dict[str, Value]:
    kubeconfig = control_plane_kubeconfig()
    if kubeconfig is None:
        raise StandInError(
            f"{urn.rpartition('::')[2]}: no control plane plays this EKS cluster;"
            f" set {CONTROL_PLANE_VARIABLE} to the kubeconfig of one"
        )
    access = read_access(kubeconfig)
    return {"control_plane_endpoint": access.server, "control_plane_authority": access.certificate_authority}
