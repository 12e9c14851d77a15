"""pinned-image: tags that move, and names that must not be mistaken for them."""

import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policy.rules.pinned_image import RULE
from tests.policy.fixtures import (
    ALL_KINDS,
    COMPLIANT_DEPLOYMENT,
    COMPLIANT_POD_SPEC,
    INIT,
    POD,
    SERVER,
    SIDECAR,
    thawed,
    with_value,
    without,
)
from tests.policy.judging import judge

DIGEST = "@sha256:" + "0" * 64


def test_the_compliant_deployment_passes() -> None:
    assert judge(RULE, COMPLIANT_DEPLOYMENT).passed


@pytest.mark.parametrize(
    "image",
    [
        *("vllm", "example.com:5000/vllm", "vllm:latest", "vllm:nightly", "vllm:main", "vllm:dev", "vllm:stable"),
        *("registry.k8s.io/x:latest-arm64", "x:py3-latest"),
    ],
)
def test_a_tag_that_moves_and_no_tag_are_violations(image: str) -> None:
    [message] = judge(RULE, with_value(COMPLIANT_DEPLOYMENT, (*SERVER, "image"), image)).violations
    assert f"image {image} has " in message
    assert "container server (spec.template.spec.containers[0].image)" in message


@pytest.mark.parametrize(
    "image",
    [
        *(
            "vllm:v0.9.1",
            "example.com:5000/vllm:1",
            "vllm:nightly-2f0e1a",
            "vllm:0.24-dev3",
            "x:latest" + DIGEST,
            "x" + DIGEST,
        ),
        *("latest:1.0", "main/dev:3", "nginx:1.27-stable", "x:2026-01-31", "x:latestish"),
    ],
)
def test_a_tag_that_names_a_version_and_a_digest_are_pinned(image: str) -> None:
    assert judge(RULE, with_value(COMPLIANT_DEPLOYMENT, (*SERVER, "image"), image)).passed


@pytest.mark.parametrize("path", [SERVER, SIDECAR, INIT])
def test_every_container_counts(path: tuple[str | int, ...]) -> None:
    assert judge(RULE, with_value(COMPLIANT_DEPLOYMENT, (*path, "image"), "busybox")).violations


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_every_kind_that_runs_pods_is_judged(kind: str) -> None:
    pod = with_value(COMPLIANT_POD_SPEC, ("containers", 0, "image"), "vllm:latest")
    resource_type, props = ALL_KINDS[kind](thawed(pod))
    assert len(judge(RULE, props, resource_type).violations) == 1


def test_a_container_without_an_image_gets_it_elsewhere() -> None:
    assert judge(RULE, without(COMPLIANT_DEPLOYMENT, (*SERVER, "image"))).passed


def test_a_debugging_container_is_left_alone() -> None:
    debug = [{"name": "debug", "image": "busybox"}]
    assert judge(RULE, with_value(COMPLIANT_DEPLOYMENT, (*POD, "ephemeralContainers"), debug)).passed


def test_an_image_that_is_not_known_yet_is_said_to_be_unjudged_and_hides_no_other() -> None:
    props = with_value(COMPLIANT_DEPLOYMENT, (*SERVER, "image"), UNKNOWN_STRING_VALUE)
    verdict = judge(RULE, with_value(props, (*SIDECAR, "image"), "metrics"))
    assert len(verdict.violations) == 1
    assert "containers[0].image" in verdict.unjudged
