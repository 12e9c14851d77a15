"""Quantities and percentages, read as the API server and the Deployment controller read them."""

import contextlib
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuron.errors import ImpossibleInputError
from neuron.quantity import parse_count, parse_quantity


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4Gi", 4 * 2**30),
        ("4096Mi", 4 * 2**30),
        ("4G", 4 * 10**9),
        ("4e9", 4 * 10**9),
        ("4E9", 4 * 10**9),
        ("1E", 10**18),
        ("1.5Gi", 3 * 2**29),
        (".5", Decimal("0.5")),
        ("3920m", Decimal("3.92")),
        (4, 4),
        ("0", 0),
    ],
)
def test_a_quantity_is_read_in_its_base_unit(text: str | int, value: Decimal | int) -> None:
    assert parse_quantity(text) == value


@pytest.mark.parametrize("text", ["", "Gi", "4gi", "4 Gi", "4GiB", "1e3Gi", "four", "0x10", "\u0661Gi", "4Gi\n", "--1"])
def test_what_the_api_server_refuses_is_refused(text: str) -> None:
    with pytest.raises(ImpossibleInputError, match="quantity"):
        parse_quantity(text)


LARGEST = Decimal(2**63 - 1)
FACTORS = {
    "": Decimal(1),
    "m": Decimal("0.001"),
    **{suffix: Decimal(10) ** (3 * power) for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)},
}
amounts = st.decimals(0, 10**6, places=3)


@given(amounts, st.sampled_from(sorted(FACTORS)))
def test_a_suffix_multiplies_and_a_sign_and_zeros_change_nothing(amount: Decimal, suffix: str) -> None:
    expected = min(amount * FACTORS[suffix], LARGEST)
    for text in (f"{amount}{suffix}", f"+{amount}{suffix}", f"00{amount}000{suffix}"):
        assert parse_quantity(text) == expected


@given(amounts, st.integers(-9, 18))
def test_an_exponent_is_a_power_of_ten_however_it_is_spelt(amount: Decimal, exponent: int) -> None:
    for letter in "eE":
        assert parse_quantity(f"{amount}{letter}{exponent}") == min(amount * Decimal(10) ** exponent, LARGEST)


@given(st.text(max_size=12))
def test_any_text_is_a_quantity_or_refused(text: str) -> None:
    with contextlib.suppress(ImpossibleInputError):
        assert parse_quantity(text) <= LARGEST


@pytest.mark.parametrize("text", ["1e19", "9e9999", "9223372036854775808", "8Ei", "99999999999999999999Gi"])
def test_what_is_too_large_is_capped_as_the_api_server_does(text: str) -> None:
    assert parse_quantity(text) == LARGEST


@given(st.integers(0, 300), st.integers(0, 500))
def test_a_percentage_rounds_up_for_surge_and_down_for_unavailable(percent: int, total: int) -> None:
    exact = Decimal(percent) * total / 100
    assert 0 <= parse_count(f"{percent}%", total, round_up=True) - exact < 1
    assert 0 <= exact - parse_count(f"{percent}%", total, round_up=False) < 1


@pytest.mark.parametrize("value", ["-1", -1, "25", "2.5%", "25 %", 1.5, "", "%"])
def test_a_count_is_an_integer_or_a_percentage(value: str | float) -> None:
    with pytest.raises(ImpossibleInputError):
        parse_count(value, 4, round_up=True)


def test_a_count_that_came_through_json_as_a_float_is_an_integer() -> None:
    assert parse_count(2.0, 4, round_up=True) == 2
