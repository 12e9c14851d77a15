"""NetworkPolicies of the stack `local`: who may talk to servers and publishers, and to whom they may talk."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.program.conftest import Recorder

Run = Callable[..., Recorder]

DNS = {
    "to": [
        {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
            "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
        }
    ],
    "ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}],
}
HTTPS = {"ports": [{"protocol": "TCP", "port": 443}]}


def policies(recorder: Recorder) -> dict[str, Any]:
    return {one.name: one.inputs["spec"] for one in recorder.of_type(":NetworkPolicy")}


def test_a_server_takes_requests_on_its_port_from_its_namespace_monitoring_and_the_named_ones(
    run_program: Run, local_stack: dict[str, Any]
) -> None:
    local_stack["serving"][0]["allowFrom"] = ["chat", "batch"]
    server = policies(run_program(local_stack))["tinyllama"]
    named = [
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}
        for name in ("monitoring", "chat", "batch")
    ]
    assert server["ingress"] == [
        {"from": [{"podSelector": {}}, *named], "ports": [{"protocol": "TCP", "port": "http"}]}
    ]
    assert server["policyTypes"] == ["Ingress", "Egress"]


def test_a_server_that_finds_its_model_published_asks_dns_alone_and_the_publisher_downloads(
    run_program: Run, local_stack: dict[str, Any]
) -> None:
    found = policies(run_program(local_stack))
    assert found["tinyllama"]["egress"] == [DNS]
    assert found["tinyllama-publisher"]["egress"] == [DNS, HTTPS]
    assert "ingress" not in found["tinyllama-publisher"]


def test_a_server_that_may_compile_downloads(run_program: Run, local_stack: dict[str, Any]) -> None:
    local_stack["serving"][0]["onMiss"] = "compile"
    assert policies(run_program(local_stack))["tinyllama"]["egress"] == [DNS, HTTPS]


@pytest.mark.parametrize(("policy", "kind"), [("tinyllama", ":Deployment"), ("tinyllama-publisher", ":Job")])
def test_each_policy_selects_the_pods_that_it_is_for_and_no_others(
    run_program: Run, local_stack: dict[str, Any], policy: str, kind: str
) -> None:
    recorder = run_program(local_stack)
    selected = policies(recorder)[policy]["podSelector"]["matchLabels"]
    for one in (":Deployment", ":Job"):
        (workload,) = recorder.of_type(one)
        labels = workload.inputs["spec"]["template"]["metadata"]["labels"]
        assert (selected.items() <= labels.items()) == (one == kind)
