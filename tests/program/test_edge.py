"""The edge that the program registers: what is there, in which order, and that no key is anywhere in clear."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from components.api_keys import MINIMUM_CHARACTERS
from components.load_balancer_controller import statements
from policy.rules.guarded_endpoint import RULE
from tests.policy.judging import Given, Verdict, judge_stack
from tests.program.conftest import SECRET_MARK, Recorder, Registered, plain

Run = Callable[..., Recorder]
KEY = "k" * MINIMUM_CHARACTERS
SECRETS = {"apiKeys": json.dumps({"team-a": KEY})}
CERTIFICATE = "arn:aws:acm:us-west-2:123456789012:certificate/0a1b"
ENVOY, NGINX, NLB = ({"kind": kind} for kind in ("envoy-gateway", "ingress-nginx", "nlb"))
LOAD_BALANCER = "service.beta.kubernetes.io/aws-load-balancer-"


def with_edge(run_program: Run, values: dict[str, Any], edge: dict[str, Any]) -> Recorder:
    secrets = SECRETS if edge["kind"] != "nlb" else None
    return run_program({**values, "edge": edge}, secrets=secrets)


def spec(recorder: Recorder, kind: str) -> dict[str, Any]:
    """The spec of the only object of a kind of custom resource."""
    (found,) = [one for one in recorder.resources if one.inputs.get("kind") == kind]
    made: dict[str, Any] = plain(found.inputs["spec"])
    return made


def test_without_an_edge_nothing_is_in_front_and_no_key_is_needed(
    run_program: Run, local_stack: dict[str, Any]
) -> None:
    for values in (local_stack, {**local_stack, "edge": {"kind": "none"}}):
        recorder = run_program(values)
        assert not recorder.of_type(":Release")
        assert not recorder.of_type(":Ingress")
        assert all(one.inputs["spec"].get("type") is None for one in recorder.of_type("core/v1:Service"))


def test_the_limit_follows_from_replicas_batch_and_queue_factor_and_is_shared_by_the_proxies(
    run_program: Run, local_stack: dict[str, Any]
) -> None:
    local_stack["serving"][0]["model"]["maxNumSeqs"] = 5
    edge = {**ENVOY, "proxies": 3, "limits": {"queueFactor": 1.5, "requestsPerMinute": 100}}
    policy = spec(with_edge(run_program, local_stack, edge), "BackendTrafficPolicy")
    assert policy["circuitBreaker"]["maxParallelRequests"] == policy["circuitBreaker"]["maxPendingRequests"] == 3
    assert policy["circuitBreaker"]["maxConnections"] > 3
    assert policy["rateLimit"]["local"]["rules"][0]["limit"] == {"requests": 34, "unit": "Minute"}


def test_times_follow_from_the_longest_request(run_program: Run, local_stack: dict[str, Any]) -> None:
    local_stack["serving"][0]["longestRequestSeconds"] = 500
    recorder = with_edge(run_program, local_stack, ENVOY)
    assert spec(recorder, "HTTPRoute")["rules"][0]["timeouts"] == {"request": "500s"}
    assert spec(recorder, "ClientTrafficPolicy")["timeout"]["http"]["streamIdleTimeout"] == "500s"
    proxy = spec(recorder, "EnvoyProxy")
    assert proxy["shutdown"]["drainTimeout"] == "520s"
    annotations = proxy["provider"]["kubernetes"]["envoyService"]["annotations"]
    assert annotations[f"{LOAD_BALANCER}listener-attributes.TCP-80"] == "tcp.idle_timeout.seconds=500"
    assert "deregistration_delay.timeout_seconds=510" in annotations[f"{LOAD_BALANCER}target-group-attributes"]


def test_only_v1_has_a_route_and_only_its_servers_namespace_may_have_one(
    run_program: Run, local_stack: dict[str, Any]
) -> None:
    recorder = with_edge(run_program, local_stack, {**ENVOY, "hostname": "llm.example.com"})
    route = spec(recorder, "HTTPRoute")
    assert [rule["matches"] for rule in route["rules"]] == [[{"path": {"type": "PathPrefix", "value": "/v1"}}]]
    assert route["hostnames"] == ["llm.example.com"]
    (listener,) = spec(recorder, "Gateway")["listeners"]
    assert listener["allowedRoutes"]["namespaces"]["selector"]["matchExpressions"][0]["values"] == ["vllm"]


@pytest.mark.parametrize(
    ("tls", "listener", "annotation"),
    [
        (None, ("HTTP", 80, None), None),
        ({"certificateArn": CERTIFICATE}, ("HTTP", 443, None), CERTIFICATE),
        ({"secret": "tls"}, ("HTTPS", 443, [{"kind": "Secret", "name": "tls"}]), None),
    ],
)
def test_tls_ends_where_the_stack_file_says(
    run_program: Run,
    local_stack: dict[str, Any],
    tls: dict[str, str] | None,
    listener: tuple[str, int, Any],
    annotation: str | None,
) -> None:
    recorder = with_edge(run_program, local_stack, {**ENVOY, **({"tls": tls} if tls else {})})
    (made,) = spec(recorder, "Gateway")["listeners"]
    assert (made["protocol"], made["port"], made.get("tls", {}).get("certificateRefs")) == listener
    service = spec(recorder, "EnvoyProxy")["provider"]["kubernetes"]["envoyService"]
    assert service["annotations"].get(f"{LOAD_BALANCER}ssl-cert") == annotation


@pytest.mark.parametrize("edge", [ENVOY, NGINX, NLB], ids=lambda edge: edge["kind"])
def test_a_load_balancer_is_internal_unless_the_stack_file_says_otherwise(
    run_program: Run, local_stack: dict[str, Any], edge: dict[str, Any]
) -> None:
    recorder = with_edge(run_program, local_stack, edge)
    text = json.dumps([plain(one.inputs) for one in recorder.resources])
    assert f'"{LOAD_BALANCER}scheme": "internal"' in text
    assert "internet-facing" not in text


def test_a_load_balancer_of_a_server_asks_what_its_readiness_probe_asks_and_lets_its_pods_drain(
    run_program: Run, local_stack: dict[str, Any]
) -> None:
    edge = {**NLB, "scheme": "internet-facing", "sourceRanges": ["203.0.113.0/24"]}
    recorder = with_edge(run_program, local_stack, edge)
    (service,) = [one.inputs for one in recorder.of_type("core/v1:Service") if one.inputs["spec"].get("type")]
    assert service["spec"]["loadBalancerClass"] == "service.k8s.aws/nlb"
    assert service["spec"]["loadBalancerSourceRanges"] == ["203.0.113.0/24"]
    annotations = service["metadata"]["annotations"]
    assert annotations[f"{LOAD_BALANCER}healthcheck-path"] == "/v1/models"
    # 10 s until nobody sends any more, 30 s for the longest request.
    assert "deregistration_delay.timeout_seconds=40" in annotations[f"{LOAD_BALANCER}target-group-attributes"]


def test_the_keys_stand_in_a_secret_of_the_servers_namespace_and_nowhere_else(
    run_program: Run, local_stack: dict[str, Any]
) -> None:
    for edge in (ENVOY, NGINX):
        recorder = with_edge(run_program, local_stack, edge)
        (secret,) = [one for one in recorder.of_type(":Secret") if one.name == "vllm-api-keys"]
        assert SECRET_MARK in secret.inputs["stringData"]
        others = [one.inputs for one in recorder.resources if one is not secret]
        assert KEY not in json.dumps(others)
    assert plain(secret.inputs["stringData"])["team-a"].startswith("{SSHA}")


def test_a_secret_that_exists_is_named_and_none_is_made(run_program: Run, local_stack: dict[str, Any]) -> None:
    recorder = run_program({**local_stack, "edge": {**ENVOY, "apiKeySecret": "given"}})
    assert spec(recorder, "SecurityPolicy")["apiKeyAuth"]["credentialRefs"] == [{"name": "given"}]
    assert not recorder.of_type(":Secret")


def test_a_policy_is_registered_before_the_route_that_it_guards(run_program: Run, local_stack: dict[str, Any]) -> None:
    kinds = [one.inputs.get("kind") for one in with_edge(run_program, local_stack, ENVOY).resources]
    assert kinds.index("SecurityPolicy") < kinds.index("HTTPRoute")
    assert kinds.index("BackendTrafficPolicy") < kinds.index("HTTPRoute")


@pytest.mark.parametrize(
    ("edge", "peer"),
    [
        (ENVOY, {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "envoy-gateway-system"}}}),
        (NGINX, {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress-nginx"}}}),
        (NLB, {"ipBlock": {"cidr": "0.0.0.0/0"}}),
    ],
    ids=lambda value: value.get("kind"),
)
def test_the_servers_let_the_edge_in(
    run_program: Run, local_stack: dict[str, Any], edge: dict[str, Any], peer: dict[str, Any]
) -> None:
    recorder = with_edge(run_program, local_stack, edge)
    (policy,) = [one for one in recorder.of_type(":NetworkPolicy") if one.name == "tinyllama"]
    assert peer in policy.inputs["spec"]["ingress"][0]["from"]


def test_the_controllers_role_reaches_what_carries_its_clusters_tag_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "us-gov-west-1")
    free = {"Describe", "Get", "List", "Create"}
    for statement in statements("mine"):
        actions = statement["Action"]
        assert isinstance(actions, list)
        assert "arn:aws:" not in json.dumps(statement), "that is another partition's"
        for action in actions:
            verb = action.partition(":")[2]
            if verb.startswith(tuple(free)) or "SecurityGroupIngress" in verb or "Listener" in verb:
                continue
            assert "Condition" in statement, action


OPEN_TO_ALL = {"scheme": "internet-facing", "tls": {"certificateArn": CERTIFICATE}}


def judged(resources: list[Registered]) -> Verdict:
    """What our own rule says of these resources."""
    return judge_stack(RULE, *(Given(one.type, plain(one.inputs), one.name) for one in resources))


@pytest.mark.parametrize(
    "edge",
    [
        {**ENVOY, **OPEN_TO_ALL},
        {**NGINX, **OPEN_TO_ALL},
        {**NLB, "scheme": "internet-facing", "sourceRanges": ["203.0.113.0/24"]},
        ENVOY,
        NGINX,
        NLB,
    ],
    ids=lambda edge: f"{edge['kind']}-{edge.get('scheme')}",
)
def test_every_edge_passes_our_own_rule(run_program: Run, local_stack: dict[str, Any], edge: dict[str, Any]) -> None:
    assert judged(with_edge(run_program, local_stack, edge).resources).violations == ()


@pytest.mark.parametrize("missing", ["SecurityPolicy", "BackendTrafficPolicy"])
def test_an_open_gateway_without_a_key_or_a_limit_is_refused(
    run_program: Run, local_stack: dict[str, Any], missing: str
) -> None:
    recorder = with_edge(run_program, local_stack, {**ENVOY, **OPEN_TO_ALL})
    verdict = judged([one for one in recorder.resources if one.inputs.get("kind") != missing])
    assert "HTTPRoute vllm/tinyllama: open to the Internet" in verdict.violations[0]


@pytest.mark.parametrize("missing", ["auth-", "limit-"])
def test_an_open_ingress_without_a_key_or_a_limit_is_refused(
    run_program: Run, local_stack: dict[str, Any], missing: str
) -> None:
    recorder = with_edge(run_program, local_stack, {**NGINX, **OPEN_TO_ALL})
    (ingress,) = recorder.of_type(":Ingress")
    notes = ingress.inputs["metadata"]["annotations"]
    for key in [key for key in notes if key.startswith(f"nginx.ingress.kubernetes.io/{missing}")]:
        del notes[key]
    assert "Ingress vllm/tinyllama: open to the Internet" in judged(recorder.resources).violations[0]
