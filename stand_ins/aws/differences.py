"""What changes between two sets of inputs, by property path."""

from collections.abc import Collection, Iterator, Mapping

from pulumi.runtime.proto import provider_pb2

from stand_ins.aws.values import Value, child_path, contains_unknown, reveal

Kind = provider_pb2.PropertyDiff
_REPLACING = {
    Kind.ADD: Kind.ADD_REPLACE,
    Kind.DELETE: Kind.DELETE_REPLACE,
    Kind.UPDATE: Kind.UPDATE_REPLACE,
}
Path = tuple[str | int, ...]


def detailed_diff(
    old: Mapping[str, Value], new: Mapping[str, Value], immutable: Collection[str]
) -> dict[str, provider_pb2.PropertyDiff]:
    """Kinds of changes by property path, "_REPLACE" for those at or below an immutable path such as launchTemplate.id.

    An unknown new value counts as a change, since it may be one. What becomes secret or public does not: the value
    stays.
    """
    changes: dict[str, provider_pb2.PropertyDiff] = {}
    for path, kind, value in _changes(reveal(dict(old)), reveal(dict(new)), ()):
        replaces = any(_concerns(path, value, immutable_path.split(".")) for immutable_path in immutable)
        changes[_written(path)] = Kind(kind=_REPLACING[kind] if replaces else kind, inputDiff=True)
    return changes


def replacing(changes: Mapping[str, provider_pb2.PropertyDiff]) -> list[str]:
    """The paths whose change replaces the resource."""
    return [path for path, change in changes.items() if change.kind in _REPLACING.values()]


def top_level(path: str) -> str:
    """The property that a written path starts with."""
    return path.partition(".")[0].partition("[")[0]


def _changes(old: Value, new: Value, path: Path) -> Iterator[tuple[Path, Kind.Kind.ValueType, Value]]:
    """Path, kind and the value that came, or went."""
    if old == new and not contains_unknown(new):
        return
    if old is None:
        yield path, Kind.ADD, new
    elif new is None:
        yield path, Kind.DELETE, old
    elif isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*old, *new]):
            yield from _changes(old.get(key), new.get(key), (*path, key))
    elif isinstance(old, list) and isinstance(new, list):
        for index in range(max(len(old), len(new))):
            yield from _changes(_item(old, index), _item(new, index), (*path, index))
    else:
        yield path, Kind.UPDATE, new


def _item(items: list[Value], index: int) -> Value:
    return items[index] if index < len(items) else None


def _concerns(path: Path, value: Value, immutable: list[str]) -> bool:
    """Whether a change is at or below an immutable path, or brings or takes an object that has it.

    Indexes do not count: an immutable list is so in all its items.
    """
    names = [key for key in path if isinstance(key, str)]
    shared = min(len(names), len(immutable))
    if names[:shared] != immutable[:shared]:
        return False
    for name in immutable[shared:]:
        if not isinstance(value, dict) or name not in value:
            return False
        value = value[name]
    return True


def _written(path: Path) -> str:
    text = ""
    for key in path:
        text = child_path(text, key)
    return text
