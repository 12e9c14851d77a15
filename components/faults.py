"""Faults in a stack's configuration: what a person reads when the input is not good."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

# A token typed into the wrong field must not come back in the message about that field.
_TOKEN = re.compile(r"hf_[A-Za-z0-9]{8,}")


@dataclass(frozen=True)
class Fault:
    """One fault, in one line. `path` is the configuration key with its way inside, as in `serving[0].replicas`."""

    path: str
    found: str
    allowed: str
    fix: str

    def __str__(self) -> str:
        """The line: path, what was found, what is allowed, the smallest fix."""
        line = f"{self.path}: found {self.found}; allowed: {self.allowed}; fix: {self.fix}"
        return _TOKEN.sub("hf_[hidden]", line.replace("\n", " "))


class ConfigurationError(ValueError):
    """All faults of a stack's configuration at once, one line each."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        """Keep the faults; the text is their lines."""
        self.faults = tuple(faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))
