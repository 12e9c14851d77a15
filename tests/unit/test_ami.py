"""AMI releases, their drivers, and the image lines that run on them."""

import pytest

from neuron.ami import (
    DRIVER_OF_DATE,
    LAST_RECORDED_DATE,
    compatible,
    days_between,
    driver_of,
    newest_compatible_date,
    parse_release,
)
from neuron.errors import ImpossibleInputError
from neuron.images import image_line


def test_a_release_version_gives_the_names_that_others_use_for_it() -> None:
    release = parse_release("1.36.2-20260714")
    assert release.kubernetes_version == "1.36"
    assert release.ami_name == "amazon-eks-node-al2023-x86_64-neuron-1.36-v20260714"
    assert release.alias == "al2023@v20260714"
    assert str(release) == "1.36.2-20260714"


@pytest.mark.parametrize("version", ["", "20260714", "1.36-20260714", "1.36.2-v20260714", "1.36.2-20261399", "latest"])
def test_anything_else_is_refused_with_an_example(version: str) -> None:
    with pytest.raises(ImpossibleInputError, match=r"a release version such as 1\.36\.2-20260714"):
        parse_release(version)


@pytest.mark.parametrize(
    ("date", "driver"),
    [
        ("20250915", "2.23.9"),
        ("20260311", "2.26.5"),
        ("20260318", "2.26.10"),
        ("20260625", "2.28.0"),
        ("20260714", "2.29.0"),
        # Exists, but no changelog that was read states its driver.
        ("20260903", None),
        # Between two releases.
        ("20260601", None),
    ],
)
def test_the_driver_of_a_release_is_what_the_changelog_states(date: str, driver: str | None) -> None:
    assert driver_of(parse_release(f"1.35.6-{date}")) == driver


def test_drivers_only_rise_from_release_to_release() -> None:
    drivers = [tuple(map(int, DRIVER_OF_DATE[date].split("."))) for date in sorted(DRIVER_OF_DATE)]
    assert drivers == sorted(drivers)
    assert DRIVER_OF_DATE[LAST_RECORDED_DATE] == "2.29.0"


def test_the_last_release_before_driver_229_is_the_newest_for_sdk_228() -> None:
    line = image_line("nxdi-0.13")
    assert newest_compatible_date(line) == "20260625"
    assert compatible(line, parse_release("1.36.2-20260625")).verdict == "compatible"


def test_a_driver_that_refuses_the_lines_runtime_is_incompatible() -> None:
    found = compatible(image_line("nxdi-0.13"), parse_release("1.36.2-20260714"))
    assert found.verdict == "incompatible"
    assert found.reason == "AMI release 1.36.2-20260714 has driver 2.29.0, nxdi-0.13 needs 2.28 or older"


def test_a_driver_older_than_the_line_needs_is_incompatible() -> None:
    found = compatible(image_line("plugin-0.24"), parse_release("1.35.2-20260304"))
    assert found.verdict == "incompatible"
    assert "needs 2.27 or newer" in found.reason


def test_a_release_newer_than_the_record_is_unknown_and_not_refused() -> None:
    found = compatible(image_line("nxdi-0.13"), parse_release("1.36.3-20260903"))
    assert found.verdict == "unknown"
    assert "last recorded release is v20260714 with driver 2.29.0" in found.reason


def test_a_line_without_known_bounds_is_unknown() -> None:
    assert compatible(image_line("v0-0.9.1"), parse_release("1.36.2-20260714")).verdict == "unknown"


def test_days_between_dates_have_no_sign() -> None:
    assert days_between("20260625", "20260714") == days_between("20260714", "20260625") == 19
