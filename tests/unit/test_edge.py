"""The edge's limits and times, and what a stack file may say of it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.api_keys import MINIMUM_CHARACTERS
from components.configuration import parse_settings
from components.edges.ingress_nginx import password_hashes
from components.faults import ConfigurationError
from neuron.edge import concurrency_limit, deregistration_seconds, idle_seconds, share
from neuron.errors import ImpossibleInputError
from neuron.images import IMAGE_LINES
from neuron.rollout import derive_drain
from tests.unit.configuration import GOOD, encoded

KEY = "k" * MINIMUM_CHARACTERS
CERTIFICATE = "arn:aws:acm:us-west-2:123456789012:certificate/0a1b"
OPEN = {"scheme": "internet-facing"}


def test_the_limit_is_what_runs_and_what_waits() -> None:
    assert concurrency_limit(replicas=2, max_num_seqs=4, queue_factor=2) == 16
    assert concurrency_limit(replicas=1, max_num_seqs=5, queue_factor=1.5) == 7
    with pytest.raises(ImpossibleInputError, match="below 1 batches are never full"):
        concurrency_limit(1, 4, 0.5)


@given(limit=st.integers(1, 10_000), proxies=st.integers(1, 100))
def test_proxies_together_let_in_the_limit_and_hardly_more(limit: int, proxies: int) -> None:
    assert limit <= share(limit, proxies) * proxies < limit + proxies


@pytest.mark.parametrize("line", IMAGE_LINES.values(), ids=IMAGE_LINES)
def test_a_load_balancer_leaves_a_pod_its_connections_until_its_requests_are_served(line: Any) -> None:
    drain = derive_drain(line, longest_request_seconds=30)
    assert deregistration_seconds(drain) == 40
    assert deregistration_seconds(drain) <= drain.grace_seconds
    assert deregistration_seconds(derive_drain(line, longest_request_seconds=9000)) == 3600


def test_a_silent_connection_lives_as_long_as_the_longest_request() -> None:
    assert (idle_seconds(30), idle_seconds(900)) == (350, 900)


def test_password_hashes_are_the_same_in_every_run_and_differ_between_clients() -> None:
    first = password_hashes({"team-a": KEY, "team-b": KEY})
    assert first == password_hashes({"team-a": KEY, "team-b": KEY})
    assert len(set(first.values())) == 2
    assert all(value.startswith("{SSHA}") for value in first.values())


def faults(edge: dict[str, Any], keys: object = None, plain_text: tuple[str, ...] = (), **changes: Any) -> list[str]:
    """The lines that a person reads for a good stack file with this edge; `keys` are the secret apiKeys."""
    values = encoded({**GOOD, **changes, "edge": edge})
    if keys is not None:
        values["apiKeys"] = json.dumps(keys)
    try:
        parse_settings(values, plain_text)
    except ConfigurationError as error:
        return str(error).splitlines()
    return []


@pytest.mark.parametrize(
    ("edge", "keys"),
    [
        ({"kind": "none"}, None),
        ({"kind": "nlb"}, None),
        ({"kind": "nlb", **OPEN, "sourceRanges": ["203.0.113.0/24"]}, None),
        ({"kind": "envoy-gateway"}, {"team-a": KEY}),
        ({"kind": "envoy-gateway", "apiKeySecret": "given"}, None),
        ({"kind": "ingress-nginx", **OPEN, "tls": {"secret": "tls"}}, {"team-a": KEY}),
    ],
)
def test_a_good_edge_is_taken(edge: dict[str, Any], keys: object) -> None:
    assert faults(edge, keys) == []


@pytest.mark.parametrize(
    ("edge", "keys", "line"),
    [
        (
            {"kind": "nlb", **OPEN},
            None,
            "edge.sourceRanges: found everyone, for servers that know no key and no limit; allowed: networks of yours; "
            "fix: state them, or set kind envoy-gateway",
        ),
        (
            {"kind": "nlb", **OPEN, "sourceRanges": ["10.0.0.0/8", "0.0.0.0/0"]},
            None,
            "edge.sourceRanges: found everyone, for servers that know no key and no limit; allowed: networks of yours; "
            "fix: state them, or set kind envoy-gateway",
        ),
        (
            {"kind": "nlb", "limits": {}},
            None,
            "edge.limits: found a value with kind nlb, which forwards connections and reads no request; allowed: none; "
            "fix: remove it, or set kind envoy-gateway",
        ),
        (
            {"kind": "nlb", "tls": {"secret": "tls"}},
            None,
            "edge.tls.secret: found tls for a load balancer; allowed: a certificate of ACM; fix: set certificateArn",
        ),
        (
            {"kind": "envoy-gateway", **OPEN, "apiKeySecret": "given"},
            None,
            "edge.tls: found nothing, so keys cross the Internet in clear; allowed: TLS; "
            "fix: set edge.tls.certificateArn, or edge.tls.secret",
        ),
        (
            {"kind": "envoy-gateway"},
            None,
            "edge.apiKeySecret: found no key that clients could show; allowed: keys; fix: pulumi config set --secret "
            'apiKeys \'{"team-a": "<key>"}\', or name a Secret in edge.apiKeySecret',
        ),
        (
            {"kind": "envoy-gateway", "apiKeySecret": "given"},
            {"team-a": KEY},
            "edge.apiKeySecret: found given beside apiKeys; allowed: one of the two; fix: drop one",
        ),
        (
            {"kind": "envoy-gateway", "tls": {}, "apiKeySecret": "given"},
            None,
            "edge.tls: found neither certificateArn nor secret; allowed: one of the two; "
            "fix: state where TLS ends: at the load balancer, or at the gateway",
        ),
        (
            {"kind": "envoy-gateway", "loadBalancerController": True, "apiKeySecret": "given"},
            None,
            "edge.loadBalancerController: found true with cluster.mode kubeconfig; allowed: false, or a mode that "
            "names an EKS cluster; fix: leave it to the stack that makes the cluster, or install the controller "
            "yourself",
        ),
        (
            {"kind": "traefik"},
            None,
            "edge.kind: found \"traefik\"; allowed: 'none', 'nlb', 'ingress-nginx' or 'envoy-gateway'; "
            "fix: set one of these",
        ),
        (
            {"kind": "envoy-gateway", "apiKeySecret": "given", "limits": {"queueFactor": 0.5}},
            None,
            "edge.limits.queueFactor: found 0.5; allowed: 1.0 or more; fix: raise it to 1.0",
        ),
        (
            {"kind": "envoy-gateway", "apiKeySecret": "given", "hostname": "*.example.com"},
            None,
            'edge.hostname: found "*.example.com"; allowed: a DNS name in lower case, such as llm.example.com; '
            "fix: write it in that form",
        ),
    ],
)
def test_a_fault_of_the_edge_is_one_line(edge: dict[str, Any], keys: object, line: str) -> None:
    assert faults(edge, keys) == [line]


def test_several_servers_need_a_hostname() -> None:
    serving = [{**GOOD["serving"][0], "name": name} for name in ("one", "two")]
    (line,) = faults({"kind": "envoy-gateway", "apiKeySecret": "given"}, serving=serving)
    assert line.startswith("edge.hostname: found nothing for 2 servers; allowed: a DNS name, below which each server")


def test_requests_may_not_last_longer_than_a_load_balancer_keeps_a_silent_connection() -> None:
    serving = [{**GOOD["serving"][0], "longestRequestSeconds": 600}]
    edge = {"kind": "envoy-gateway", "apiKeySecret": "given"}
    assert faults(edge, serving=serving) == []
    (line,) = faults({**edge, "tls": {"certificateArn": CERTIFICATE}}, serving=serving)
    assert line.startswith("serving[0].longestRequestSeconds: found 600, longer than the load balancer keeps")


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({}, "an empty object"),
        ([KEY], "something else"),
        ({"team-a": "short"}, "a key of 5 characters for team-a"),
        ({"Team A": KEY}, 'a client "Team A"'),
        ({"team-a": KEY, "team-b": KEY}, "another client's key for team-b"),
    ],
)
def test_bad_keys_are_told_without_quoting_one(keys: object, words: str) -> None:
    (line,) = faults({"kind": "envoy-gateway"}, keys)
    assert line.startswith(f"apiKeys: found {words}; allowed: ")
    assert KEY not in line


def test_keys_in_plain_text_are_refused_and_not_repeated() -> None:
    (line,) = faults({"kind": "envoy-gateway"}, {"team-a": KEY}, ("apiKeys",))
    assert line.startswith("apiKeys: found a value in plain text; allowed: a secret; fix: pulumi config set --secret")
    assert KEY not in line
