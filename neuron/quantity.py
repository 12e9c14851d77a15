"""Kubernetes quantities and the percentages of a rolling update, read as the API server reads them."""

import re
from decimal import Decimal

from neuron.errors import ImpossibleInputError

# https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
_MULTIPLIERS: dict[str, Decimal] = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    "k": Decimal(10**3),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "T": Decimal(10**12),
    "P": Decimal(10**15),
    "E": Decimal(10**18),
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
    "Ti": Decimal(2**40),
    "Pi": Decimal(2**50),
    "Ei": Decimal(2**60),
}
_QUANTITY = re.compile(r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?)(?P<suffix>[A-Za-z]*)", re.ASCII)
# The API server caps what is larger.
_LARGEST = Decimal(2**63 - 1)
_PERCENTAGE = re.compile(r"(?P<number>\d+)%", re.ASCII)


def parse_quantity(value: str | int | float) -> Decimal:
    """Read a quantity (`4Gi`, `4G`, `500m`, `4e9`, `4`) in its base unit: bytes, cores or devices.

    Raises ImpossibleInputError for text that the API server would refuse.
    """
    match = _QUANTITY.fullmatch(str(value))
    if match is None or match["suffix"] not in _MULTIPLIERS or ("e" in match["number"].lower() and match["suffix"]):
        raise ImpossibleInputError(f"found {value!r}; allowed: a Kubernetes quantity such as 4Gi, 500m or 4e9")
    return min(Decimal(match["number"]) * _MULTIPLIERS[match["suffix"]], _LARGEST)


def parse_count(value: str | int | float, total: int, *, round_up: bool) -> int:
    """Read a count that may be a percentage of `total`, as maxSurge (rounded up) and maxUnavailable (rounded down) are.

    Raises ImpossibleInputError for anything but a non-negative integer or a percentage.
    """
    # Policies meet numbers as JSON has them, where 1 may arrive as 1.0.
    if isinstance(value, int | float) and value >= 0 and value == int(value):
        return int(value)
    match = _PERCENTAGE.fullmatch(str(value))
    if match is None:
        raise ImpossibleInputError(f"found {value!r}; allowed: a non-negative integer or a percentage such as 25%")
    numerator = int(match["number"]) * total
    return -(-numerator // 100) if round_up else numerator // 100
