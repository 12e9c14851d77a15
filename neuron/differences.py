"""Names the inputs in which two configurations differ.

Ships into the containers, too: preview and pod say it in the same words. So it imports nothing of ours.
"""

import json
from collections.abc import Mapping

_NOTHING = "nothing"


def differences(wanted: Mapping[str, object], found: Mapping[str, object]) -> tuple[str, ...]:
    """One phrase for each input that differs, such as "max_num_seqs: wanted 4, found 8"; nested names are dotted."""
    flat_wanted, flat_found = _flatten(wanted), _flatten(found)
    names = sorted(flat_wanted.keys() | flat_found.keys())
    pairs = ((name, flat_wanted.get(name, _NOTHING), flat_found.get(name, _NOTHING)) for name in names)
    return tuple(f"{name}: wanted {ours}, found {theirs}" for name, ours, theirs in pairs if ours != theirs)


def _flatten(values: Mapping[str, object], prefix: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            flat.update(_flatten(value, f"{prefix}{name}."))
        else:
            flat[prefix + name] = json.dumps(value, sort_keys=True)
    return flat
