"""The smallest change that mends a value of the wrong shape."""

from collections.abc import Iterable
from difflib import get_close_matches
from types import MappingProxyType

from pydantic_core import ErrorDetails

_QUOTES = "put it in quotes"
_LIST = "write a list, each entry in a line of its own behind a dash"
_MAPPING = "write its keys below it, indented"

# By pydantic's type of error, where the value that was found does not matter.
_FIXES = MappingProxyType(
    {
        "bool_type": "write true or false, without quotes",
        "string_too_short": "write a text that is not empty",
        "list_type": _LIST,
        "tuple_type": _LIST,
        "dict_type": _MAPPING,
        "model_type": _MAPPING,
        "model_attributes_type": _MAPPING,
    }
)


def fix_value(detail: ErrorDetails) -> str:
    """The fix of a value that pydantic refuses."""
    kind, found, context = detail["type"], detail["input"], detail.get("ctx", {})
    if kind in _FIXES:
        return _FIXES[kind]
    if kind == "greater_than_equal":
        return f"raise it to {context['ge']}"
    if kind == "less_than_equal":
        return f"lower it to {context['le']}"
    if kind == "greater_than":
        return f"raise it above {context['gt']}"
    if kind == "literal_error":
        return fix_choice(found, [one.strip(" '") for one in context["expected"].replace(" or ", ", ").split(",")])
    if kind == "string_type":
        return _QUOTES if isinstance(found, int | float) else "write a text"
    if kind in ("int_type", "float_type"):
        return _fix_number(found, "a whole number" if kind == "int_type" else "a number")
    return "write it in that form"


def fix_choice(found: object, allowed: Iterable[str]) -> str:
    """The fix of a value that is none of a few: the one that looks like it, if one does."""
    matches = get_close_matches(found, list(allowed), 1) if isinstance(found, str) else []
    return f"set {matches[0]}" if matches else "set one of these"


def fix_key(found: object, known: Iterable[str]) -> str:
    """The fix of a key that the section does not have."""
    matches = get_close_matches(str(found), list(known), 1)
    return f"rename it to {matches[0]}" if matches else "remove it"


def _fix_number(found: object, wanted: str) -> str:
    if isinstance(found, str) and found.strip().isdecimal():
        return f"write {found.strip()}, without quotes"
    return f"write {wanted}"
