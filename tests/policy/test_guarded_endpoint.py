"""guarded-endpoint: load balancers and Ingresses, open or not, in front of a server or of something else."""

from typing import Any

import pytest
from pulumi_policy.proxy import UNKNOWN_OBJECT_VALUE, UNKNOWN_STRING_VALUE

from policy.rules.guarded_endpoint import RULE
from tests.policy.fixtures import COMPLIANT_DEPLOYMENT, DEPLOYMENT_TYPE, SERVER, with_value, without
from tests.policy.judging import Given, judge_stack

SERVER_PODS = Given(DEPLOYMENT_TYPE, COMPLIANT_DEPLOYMENT, "server")
NLB = "service.beta.kubernetes.io/aws-load-balancer-"
NGINX = "nginx.ingress.kubernetes.io/"
ALB = "alb.ingress.kubernetes.io/"


def service(annotations: Any = None, name: str = "vllm", namespace: str = "serving", **spec: Any) -> Given:
    metadata = {"name": name, "namespace": namespace, "annotations": annotations}
    spec = {"type": "LoadBalancer", "selector": {"app": "vllm"}, "ports": [{"port": 80}], **spec}
    props = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}
    return Given("kubernetes:core/v1:Service", props, f"service-{name}")


def ingress(annotations: Any = None, backend: str = "vllm", **spec: Any) -> Given:
    paths = [{"path": "/", "pathType": "Prefix", "backend": {"service": {"name": backend, "port": {"number": 80}}}}]
    metadata = {"name": "edge", "namespace": "serving", "annotations": annotations}
    spec = {"ingressClassName": "nginx", "rules": [{"http": {"paths": paths}}], **spec}
    props = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata, "spec": spec}
    return Given("kubernetes:networking.k8s.io/v1:Ingress", props, "edge")


INSIDE = service(type="ClusterIP")


def test_a_service_inside_the_cluster_passes() -> None:
    assert judge_stack(RULE, SERVER_PODS, INSIDE).passed
    assert judge_stack(RULE, SERVER_PODS, service(type="NodePort")).passed


@pytest.mark.parametrize(
    "entry",
    [
        service(),
        service({f"{NLB}scheme": "internet-facing"}),
        service({f"{NLB}scheme": "internet-facing"}, loadBalancerClass="service.k8s.aws/nlb"),
        service({f"{NLB}type": "nlb"}),
        service({f"{NLB}internal": "false"}),
        service(loadBalancerSourceRanges=["0.0.0.0/0"]),
        service(loadBalancerSourceRanges=["10.0.0.0/8", "::/0"]),
    ],
)
def test_a_load_balancer_for_everyone_must_not_point_at_a_server(entry: Given) -> None:
    verdict = judge_stack(RULE, SERVER_PODS, entry)
    assert (
        "Service serving/vllm: open to the Internet, and points straight at Deployment serving/vllm"
        in (verdict.violations[0])
    )
    assert verdict.urns == (entry.urn,)


@pytest.mark.parametrize(
    "entry",
    [
        service({f"{NLB}scheme": "internal"}),
        service({f"{NLB}internal": "true"}),
        service({f"{NLB}internal": "0.0.0.0/0"}),
        service({"networking.gke.io/load-balancer-type": "Internal"}),
        service(loadBalancerClass="service.k8s.aws/nlb"),
        service({f"{NLB}type": "external"}),
        service(loadBalancerSourceRanges=["10.0.0.0/8"]),
        service({"service.beta.kubernetes.io/load-balancer-source-ranges": "10.0.0.0/8, 192.168.0.0/16"}),
    ],
)
def test_a_load_balancer_for_some_passes(entry: Given) -> None:
    assert judge_stack(RULE, SERVER_PODS, entry).passed


def test_a_load_balancer_in_front_of_a_gateway_or_of_another_namespace_passes() -> None:
    assert judge_stack(RULE, SERVER_PODS, service(selector={"app": "envoy"})).passed
    assert judge_stack(RULE, SERVER_PODS, service(selector={"app": "vllm", "tier": "edge"})).passed
    assert judge_stack(RULE, SERVER_PODS, service(selector={})).passed
    assert judge_stack(RULE, SERVER_PODS, service(namespace="other")).passed


def test_a_web_server_may_be_open() -> None:
    web = without(with_value(COMPLIANT_DEPLOYMENT, (*SERVER, "image"), "nginx:1.27"), (*SERVER, "args"))
    assert judge_stack(RULE, Given(DEPLOYMENT_TYPE, web), service()).passed


@pytest.mark.parametrize(
    "entry",
    [
        ingress(),
        ingress({f"{NGINX}limit-connections": "4"}),
        ingress({f"{NGINX}auth-url": "https://auth"}),
        ingress({f"{ALB}scheme": "internet-facing"}, ingressClassName="alb"),
        ingress({f"{ALB}scheme": "internet-facing", "kubernetes.io/ingress.class": "alb"}, ingressClassName=None),
        ingress({f"{ALB}scheme": "internet-facing", f"{ALB}wafv2-acl-arn": "arn", f"{ALB}auth-type": "none"}),
        ingress(rules=[], defaultBackend={"service": {"name": "vllm"}}),
    ],
)
def test_an_ingress_without_limits_and_authentication_must_not_point_at_a_server(entry: Given) -> None:
    verdict = judge_stack(RULE, SERVER_PODS, INSIDE, entry)
    assert "Ingress serving/edge: open to the Internet" in verdict.violations[0]
    assert verdict.urns == (entry.urn,)


@pytest.mark.parametrize(
    "entry",
    [
        ingress({f"{NGINX}limit-connections": "4", f"{NGINX}auth-url": "https://auth"}),
        ingress({f"{NGINX}limit-rps": "4", f"{NGINX}auth-secret": "users"}),
        ingress({f"{ALB}scheme": "internal"}, ingressClassName="alb"),
        ingress(ingressClassName="alb"),
        ingress(
            {f"{ALB}scheme": "internet-facing", f"{ALB}wafv2-acl-arn": "arn", f"{ALB}auth-type": "oidc"},
            ingressClassName="alb",
        ),
        ingress(ingressClassName="nginx-internal"),
        ingress({"konghq.com/plugins": "key-auth,rate-limiting"}, ingressClassName="kong"),
        ingress(backend="gateway"),
    ],
)
def test_a_guarded_or_internal_ingress_passes(entry: Given) -> None:
    gateway = service(name="gateway", type="ClusterIP", selector={"app": "envoy"})
    assert judge_stack(RULE, SERVER_PODS, INSIDE, gateway, entry).passed


def test_the_old_form_of_a_backend_is_understood() -> None:
    paths = [{"path": "/", "backend": {"serviceName": "vllm", "servicePort": 80}}]
    assert judge_stack(RULE, SERVER_PODS, INSIDE, ingress(rules=[{"http": {"paths": paths}}])).violations


@pytest.mark.parametrize(
    "entry",
    [
        service(UNKNOWN_OBJECT_VALUE),
        service({f"{NLB}scheme": UNKNOWN_STRING_VALUE}),
        service(loadBalancerClass=UNKNOWN_STRING_VALUE),
        service(loadBalancerSourceRanges=[UNKNOWN_STRING_VALUE]),
        service(type=UNKNOWN_STRING_VALUE),
        service(selector={"app": UNKNOWN_STRING_VALUE}),
        ingress(UNKNOWN_OBJECT_VALUE),
        ingress({f"{NGINX}limit-rps": UNKNOWN_STRING_VALUE, f"{NGINX}auth-url": "https://auth"}),
        ingress(ingressClassName=UNKNOWN_STRING_VALUE),
        ingress(backend=UNKNOWN_STRING_VALUE),
    ],
)
def test_unknown_values_are_said_to_be_unjudged_and_break_nothing(entry: Given) -> None:
    verdict = judge_stack(RULE, SERVER_PODS, INSIDE, entry)
    assert verdict.violations == ()
    assert entry.name in verdict.unjudged
