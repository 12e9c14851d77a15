"""Print the packages of the environment as a JSON list: name, version, plugin (its pulumi-plugin.json), is_required.

Started by path, in the project's own virtual environment: standard library only.
"""

import json
import re
from importlib import metadata


def _normalized(name: str) -> str:
    """A distribution's name as PEP 503 writes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _requirements(distribution: metadata.Distribution) -> set[str]:
    """The names that a distribution needs, extras left out."""
    lines = [line for line in distribution.requires or () if "extra ==" not in line]
    return {_normalized(re.split(r"[^\w.-]", line, maxsplit=1)[0]) for line in lines}


def _plugin(distribution: metadata.Distribution) -> object:
    """The content of the package's pulumi-plugin.json; None without one."""
    for file in distribution.files or ():
        if file.name == "pulumi-plugin.json":
            return json.loads(file.read_text(encoding="utf-8"))
    return None


distributions = list(metadata.distributions())
required = set().union(*map(_requirements, distributions))
print(
    json.dumps(
        [
            {
                "name": _normalized(distribution.metadata["Name"]),
                "version": distribution.version,
                "plugin": _plugin(distribution),
                "is_required": _normalized(distribution.metadata["Name"]) in required,
            }
            for distribution in distributions
        ]
    )
)
