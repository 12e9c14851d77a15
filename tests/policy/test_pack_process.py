"""The pack booted as the language host boots it, and driven as the engine drives it."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import grpc
import yaml
from pulumi.runtime.proto import analyzer_pb2, analyzer_pb2_grpc
from pulumi_policy import EnforcementLevel
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policy.exceptions import KEY_PREFIX, Ledger, today
from policy.policies import exceptions_report
from policy.rules import RULES
from tests.policy.conftest import ROOT, Pack, struct
from tests.policy.fixtures import (
    ALL_KINDS,
    COMPLIANT_DEPLOYMENT,
    COMPLIANT_POD_SPEC,
    DEPLOYMENT_TYPE,
    INIT,
    POD,
    SERVER,
    SIDECAR,
    TOKEN,
    Props,
    thawed,
    with_value,
    without,
)
from tests.policy.judging import Given, judge, judge_stack
from tools.language_host.policy_proxy import PolicyProxy

StartPack = Callable[..., Pack]
# In the order in which the SDK asks them.
ALL = (*RULES, exceptions_report(Ledger()))
# What the pack may take for a stack of this size. It takes 1.1 to 1.4 s on cores of its own, 0.36 s of it for the
# conversations; on cores that others use too, processor time gets longer as well.
RESOURCES = 500
BUDGET_SECONDS = 2.0
NEURON_IMAGE = "public.ecr.aws/neuron/pytorch-inference-vllm-neuronx"


def request(given: Given) -> analyzer_pb2.AnalyzeRequest:
    return analyzer_pb2.AnalyzeRequest(
        type=given.type, properties=struct(thawed(given.props)), urn=given.urn, name=given.name
    )


def resource(given: Given) -> analyzer_pb2.AnalyzerResource:
    return analyzer_pb2.AnalyzerResource(
        type=given.type, properties=struct(thawed(given.props)), urn=given.urn, name=given.name
    )


def broken_deployment() -> Props:
    props = without(COMPLIANT_DEPLOYMENT, ("spec", "strategy"))
    props = without(props, (*SIDECAR, "resources"))
    props = without(props, (*SERVER, "readinessProbe"))
    props = with_value(props, (*SERVER, "env", 0), {"name": "HF_TOKEN", "value": TOKEN})
    props = without(props, (*SERVER, "lifecycle"))
    props = with_value(props, (*SIDECAR, "image"), f"{NEURON_IMAGE}:0.9.1-neuronx-py310")
    props = with_value(props, (*INIT, "image"), f"{NEURON_IMAGE}:0.24.0-neuronx-py313")
    props = with_value(props, (*INIT, "resources", "limits", "memory"), "64Gi")
    props = with_value(props, (*POD, "volumes"), [{"name": "models", "hostPath": {"path": "/models"}}])
    props = with_value(props, (*SERVER, "volumeMounts"), [{"name": "models", "mountPath": "/models"}])
    return with_value(props, (*SERVER, "image"), f"{NEURON_IMAGE}:latest")


# The rules about pods that see all they need in one resource.
OF_A_WORKLOAD = {
    *("memory-limits", "host-memory-fit", "probes", "graceful-drain", "no-plaintext-hf-token", "rollout-capacity"),
    *("pinned-image", "image-line-matches-accelerator", "supported-image-line", "shared-cache-access-mode"),
}


def test_the_pack_starts_from_any_directory_and_prints_nothing_but_its_port(
    start_pack: StartPack, tmp_path: Path
) -> None:
    for pack in (
        start_pack(),
        start_pack("policy", ROOT),
        start_pack(".", ROOT / "policy"),
        start_pack(directory=tmp_path),
    ):
        assert [policy.name for policy in pack.info().policies] == [rule.id for rule in ALL]
        pack.process.terminate()
        assert pack.process.communicate(timeout=10) == ("", "")


def test_the_pack_says_of_each_policy_what_the_engine_shows(start_pack: StartPack) -> None:
    info = start_pack().info()
    assert info.name == "neuron-serving"
    for policy, rule in zip(info.policies, ALL, strict=True):
        mandatory = rule.level is EnforcementLevel.MANDATORY
        assert policy.enforcementLevel == (analyzer_pb2.MANDATORY if mandatory else analyzer_pb2.ADVISORY)
        assert policy.severity != analyzer_pb2.POLICY_SEVERITY_UNSPECIFIED
        assert (policy.displayName, policy.url) == (rule.title, rule.url)
        assert policy.remediation_steps


def test_the_project_file_names_the_environment_of_the_program_and_a_version() -> None:
    project = yaml.safe_load((ROOT / "policy" / "PulumiPolicy.yaml").read_text())
    program = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())
    # The language host resolves the path against the directory of the file that names it.
    environment = ROOT / "policy" / project["runtime"]["options"]["virtualenv"]
    assert environment.resolve() == (ROOT / program["runtime"]["options"]["virtualenv"]).resolve()
    assert project["version"]


def test_every_rule_reports_on_a_resource_that_breaks_them_all_and_no_token_comes_out(start_pack: StartPack) -> None:
    diagnostics = start_pack().analyze(request(Given(DEPLOYMENT_TYPE, broken_deployment())))
    assert {one.policyName for one in diagnostics} == OF_A_WORKLOAD
    advisory = {one.policyName for one in diagnostics if one.enforcementLevel == analyzer_pb2.ADVISORY}
    assert advisory == {"supported-image-line"}
    assert not any(TOKEN[3:] in one.message for one in diagnostics)


def test_what_is_unknown_in_a_preview_is_a_warning_beside_the_violations(start_pack: StartPack) -> None:
    props = with_value(broken_deployment(), (*SERVER, "resources", "limits", "memory"), UNKNOWN_STRING_VALUE)
    diagnostics = start_pack().analyze(request(Given(DEPLOYMENT_TYPE, props)))
    levels = [one.enforcementLevel for one in diagnostics if one.policyName == "memory-limits"]
    assert levels == [analyzer_pb2.MANDATORY, analyzer_pb2.ADVISORY]
    warning = next(one.message for one in diagnostics if one.enforcementLevel == analyzer_pb2.ADVISORY)
    assert "containers[0].resources.limits.memory; everything else was judged" in warning


def test_a_level_from_the_configuration_holds_in_both_passes(start_pack: StartPack) -> None:
    pack = start_pack()
    given, stack = Given(DEPLOYMENT_TYPE, broken_deployment()), [resource(one) for one in mixed_stack()]
    advisory = analyzer_pb2.PolicyConfig(enforcementLevel=analyzer_pb2.ADVISORY)
    pack.configure({rule.id: advisory for rule in RULES})
    assert {one.enforcementLevel for one in pack.analyze(request(given))} == {analyzer_pb2.ADVISORY}
    assert {one.enforcementLevel for one in pack.analyze_stack(stack)} == {analyzer_pb2.ADVISORY}
    disabled = analyzer_pb2.PolicyConfig(enforcementLevel=analyzer_pb2.DISABLED)
    pack.configure({rule.id: disabled for rule in RULES})
    assert pack.analyze(request(given)) == []
    assert pack.analyze_stack(stack) == []


def mixed_stack() -> list[Given]:
    """Compliant and broken workloads of all kinds, a full pool, and three times as many resources that run no pods."""
    pods = [
        thawed(COMPLIANT_POD_SPEC),
        without(COMPLIANT_POD_SPEC, ("containers", 0, "resources", "limits", "memory")),
        without(COMPLIANT_POD_SPEC, ("containers", 0, "startupProbe")),
        with_value(COMPLIANT_POD_SPEC, ("containers", 0, "args", 0), TOKEN),
    ]
    pool = {"instanceTypes": ["trn1.2xlarge"], "scalingConfig": {"maxSize": 1}}
    surging = with_value(COMPLIANT_DEPLOYMENT, ("spec", "strategy", "rollingUpdate"), {"maxSurge": 1})
    stack = [
        Given("aws:eks/nodeGroup:NodeGroup", pool, "pool"),
        Given(DEPLOYMENT_TYPE, surging, "surging"),
        Given(DEPLOYMENT_TYPE, with_value(surging, POD, pods[0]), "other"),
    ]
    for number, (kind, pod) in enumerate(itertools.cycle(itertools.product(ALL_KINDS, pods))):
        if len(stack) == RESOURCES:
            return stack
        resource_type, props = ALL_KINDS[kind](thawed(pod))
        beside = [
            Given(resource_type, props, f"workload-{number}"),
            Given("kubernetes:core/v1:ConfigMap", {"kind": "ConfigMap", "data": {"MODEL": "tiny"}}, f"config-{number}"),
            Given(
                "kubernetes:core/v1:Service",
                {"kind": "Service", "spec": {"ports": [{"port": 80}]}},
                f"service-{number}",
            ),
            Given("aws:iam/role:Role", {"assumeRolePolicy": "{}"}, f"role-{number}"),
        ]
        stack += beside[: RESOURCES - len(stack)]
    raise AssertionError("the cycle does not end")


@dataclass(frozen=True)
class Judged:
    """What a pack said of a stack, resource by resource and as a whole, and the processor time that it took."""

    by_resource: list[list[analyzer_pb2.AnalyzeDiagnostic]]
    by_stack: list[analyzer_pb2.AnalyzeDiagnostic]
    seconds: float


def judged(pack: Pack, stack: list[Given]) -> Judged:
    pack.info()
    requests, resources = [request(one) for one in stack], [resource(one) for one in stack]
    before = pack.cpu_seconds()
    by_resource = [pack.analyze(one) for one in requests]
    by_stack = pack.analyze_stack(resources)
    return Judged(by_resource, by_stack, pack.cpu_seconds() - before)


def test_a_large_stack_is_judged_in_time_and_as_in_this_process(start_pack: StartPack) -> None:
    stack = mixed_stack()
    verdict = judged(start_pack(), stack)

    for given, diagnostics in zip(stack, verdict.by_resource, strict=True):
        expected = [
            (rule.id, message)
            for rule in RULES
            if rule.judge_resource
            for message in judge(rule, given.props, given.type, given.name).violations
        ]
        assert [(one.policyName, one.message.split("\n", 1)[1]) for one in diagnostics] == expected
    expected_of_stack = [
        (rule.id, message, urn)
        for rule in RULES
        if rule.judge_stack
        for message, urn in zip(*_stack_verdict(rule.id, stack), strict=True)
    ]
    # Nothing declares a quota for the pool, and vcpu-quota says so.
    warnings = [one for one in verdict.by_stack if "no quota is declared" in one.message]
    assert [one.policyName for one in warnings] == ["vcpu-quota"]
    violations = [one for one in verdict.by_stack if one not in warnings]
    assert [(one.policyName, one.message.split("\n", 1)[1], one.urn) for one in violations] == expected_of_stack
    assert any(one.policyName == "rollout-capacity" for one in verdict.by_stack)
    assert verdict.seconds < BUDGET_SECONDS


def _stack_verdict(rule_id: str, stack: list[Given]) -> tuple[tuple[str, ...], tuple[str | None, ...]]:
    rule = next(one for one in RULES if one.id == rule_id)
    verdict = judge_stack(rule, *stack)
    return verdict.violations, verdict.urns


def test_an_exception_is_a_warning_of_its_own_policy_in_both_passes(start_pack: StartPack) -> None:
    pack = start_pack()
    until = f"{today() + timedelta(days=30)} reason"
    claim = {"metadata": {"name": "models"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    props = with_value(COMPLIANT_DEPLOYMENT, ("spec", "replicas"), 2)
    props = with_value(props, (*POD, "volumes"), [{"name": "models", "persistentVolumeClaim": {"claimName": "models"}}])
    props = without(props, (*SIDECAR, "resources"))
    excepted = {f"{KEY_PREFIX}memory-limits": until, f"{KEY_PREFIX}shared-cache-access-mode": until}
    for annotations, level in (({}, analyzer_pb2.MANDATORY), (excepted, analyzer_pb2.ADVISORY)):
        server = Given(DEPLOYMENT_TYPE, with_value(props, ("metadata", "annotations"), annotations), "server")
        volume = Given(
            "kubernetes:core/v1:PersistentVolumeClaim",
            with_value(claim, ("metadata", "namespace"), "serving"),
        )
        [in_resource] = pack.analyze(request(server))
        [in_stack] = pack.analyze_stack([resource(server), resource(volume)])
        assert in_resource.enforcementLevel == in_stack.enforcementLevel == level
        assert "no memory limit" in in_resource.message
        assert "claim models of mode ReadWriteOnce is used by 2 replicas" in in_stack.message
        assert (in_resource.policyName == in_stack.policyName == "policy-exceptions") is bool(annotations)


def test_the_quotas_of_the_stack_reach_the_pack_as_the_language_host_hands_them_over(start_pack: StartPack) -> None:
    pool = Given("aws:eks/nodeGroup:NodeGroup", {"instanceTypes": ["trn1.2xlarge"], "scalingConfig": {"maxSize": 1}})
    host = PolicyProxy()
    stack = analyzer_pb2.AnalyzerStackConfigureRequest(
        organization="organization", project="shop", stack="prod", config={"shop:quotas": '{"trn":8}'}
    )
    with host, grpc.insecure_channel(f"127.0.0.1:{host.port}") as channel:
        analyzer_pb2_grpc.AnalyzerStub(channel).ConfigureStack(stack)
        environment = host.variables()
    pack = start_pack(environment=environment)
    [refused] = pack.analyze_stack([resource(pool)])
    assert (refused.policyName, refused.enforcementLevel) == ("vcpu-quota", analyzer_pb2.MANDATORY)
    assert "= 16 of 8 vCPUs (L-2C3B7624, declared in the stack file: 8)" in refused.message
    enough = struct({"quotas": {"trn": 16}})
    pack.configure(
        {"vcpu-quota": analyzer_pb2.PolicyConfig(enforcementLevel=analyzer_pb2.MANDATORY, properties=enough)}
    )
    assert pack.analyze_stack([resource(pool)]) == []


FAILING_PACK = f"""
import sys
from dataclasses import replace
sys.path.insert(0, {str(ROOT)!r})
from pulumi_policy import PolicyPack
from policy.decoding import decode_once
from policy.policies import policies
from policy.rules import RULES

decode_once()

def fail(_):
    raise KeyError({TOKEN!r})

PolicyPack("failing", policies=policies([
    replace(rule, judge_resource=rule.judge_resource and fail) if rule.id == "memory-limits"
    else replace(rule, judge_stack=fail) if rule.id == "guarded-endpoint" else rule
    for rule in RULES
]))
"""


def test_a_rule_that_fails_is_reported_and_turns_no_other_off(start_pack: StartPack, tmp_path: Path) -> None:
    (tmp_path / "PulumiPolicy.yaml").write_text("runtime: python\n")
    (tmp_path / "__main__.py").write_text(FAILING_PACK)
    pack = start_pack(str(tmp_path))
    in_resource = pack.analyze(request(Given(DEPLOYMENT_TYPE, broken_deployment())))
    assert {one.policyName for one in in_resource} == OF_A_WORKLOAD
    in_stack = pack.analyze_stack([resource(one) for one in mixed_stack()])
    assert {"guarded-endpoint", "rollout-capacity"} <= {one.policyName for one in in_stack}
    for diagnostics, rule in ((in_resource, "memory-limits"), (in_stack, "guarded-endpoint")):
        [failed] = [one for one in diagnostics if one.policyName == rule]
        assert "the rule itself failed (KeyError in fail, line 13)" in failed.message
        assert failed.enforcementLevel == analyzer_pb2.MANDATORY
        assert TOKEN[3:] not in failed.message
