"""no-plaintext-hf-token: a token is found wherever it stands, no message repeats it, and what looks like one is not."""

import base64
import gzip
import string
from collections.abc import Callable
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from typing import Any

import pulumi
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pulumi_policy.proxy import UNKNOWN_OBJECT_VALUE, UNKNOWN_STRING_VALUE

from policy.rules.no_plaintext_hf_token import RULE
from tests.policy.fixtures import (
    ALL_KINDS,
    COMPLIANT_DEPLOYMENT,
    COMPLIANT_POD_SPEC,
    CUSTOM_RESOURCE_TYPE,
    INIT,
    POD,
    SERVER,
    SIDECAR,
    TOKEN,
    Path,
    Props,
    thawed,
    with_value,
)
from tests.policy.judging import Verdict, judge

CONFIG_MAP_TYPE = "kubernetes:core/v1:ConfigMap"
RELEASE_TYPE = "kubernetes:helm.sh/v3:Release"
TEMPLATE_TYPE = "aws:ec2/launchTemplate:LaunchTemplate"


def judge_env(entry: Any, container: Path = SERVER) -> Verdict:
    return judge(RULE, with_value(COMPLIANT_DEPLOYMENT, (*container, "env"), [entry]))


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def mime(text: str, charset: str | None = None) -> str:
    message = MIMEMultipart(boundary="//")
    message.attach(MIMEText("plain", "x-shellscript"))
    message.attach(MIMEText(text, "cloud-config", charset))
    return message.as_string()


# Every place in which a token must be found, by name: the resource type, and the properties that hold the text.
PLACES: dict[str, Callable[[str], tuple[str, Props]]] = {
    "env": lambda text: deployment((*SERVER, "env", 0, "value"), text),
    "args": lambda text: deployment((*SERVER, "args", 0), text),
    "command": lambda text: deployment((*SERVER, "command", 1), text),
    "init container": lambda text: deployment((*INIT, "command", 1), text),
    "sidecar": lambda text: deployment((*SIDECAR, "args"), [text]),
    "ephemeral container": lambda text: deployment((*POD, "ephemeralContainers"), [{"name": "a", "args": [text]}]),
    "lifecycle hook": lambda text: deployment((*SERVER, "lifecycle", "postStart", "exec", "command"), ["sh", text]),
    "probe header": lambda text: deployment((*SERVER, "startupProbe", "httpGet", "httpHeaders"), [{"value": text}]),
    "patch": lambda text: (
        "kubernetes:apps/v1:DeploymentPatch",
        deployment((*SERVER, "args", 0), text)[1],
    ),
    "config map": lambda text: (CONFIG_MAP_TYPE, {"data": {"settings.yaml": text}}),
    "config map patch": lambda text: ("kubernetes:core/v1:ConfigMapPatch", {"data": {"settings.yaml": text}}),
    "config map in a list": lambda text: (
        "kubernetes:core/v1:ConfigMapList",
        {"kind": "ConfigMapList", "apiVersion": "v1", "items": [{"data": {"a": text}}]},
    ),
    "binary data": lambda text: (CONFIG_MAP_TYPE, {"binaryData": {"settings": encoded(text)}}),
    "Ray Serve config": lambda text: ("kubernetes:ray.io/v1:RayService", {"spec": {"serveConfigV2": text}}),
    "Helm values": lambda text: (RELEASE_TYPE, {"values": {"server": {"extraArgs": ["a", text]}}}),
    "Helm value file": lambda text: (RELEASE_TYPE, {"valueYamlFiles": [pulumi.StringAsset(text)]}),
    "Helm chart": lambda text: ("kubernetes:helm.sh/v4:Chart", {"values": {"token": text}}),
    "Flux release": lambda text: (
        CUSTOM_RESOURCE_TYPE,
        {"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "spec": {"values": {"a": text}}},
    ),
    "user data": lambda text: (TEMPLATE_TYPE, {"userData": encoded(text)}),
    "user data in plain text": lambda text: ("aws:ec2/instance:Instance", {"userData": text}),
    "user data in an instance": lambda text: ("aws:ec2/instance:Instance", {"userDataBase64": encoded(text)}),
    "user data in a MIME part": lambda text: (TEMPLATE_TYPE, {"userData": encoded(mime(text))}),
    "user data in a base64 MIME part": lambda text: (TEMPLATE_TYPE, {"userData": encoded(mime(text, "utf-8"))}),
    "compressed user data": lambda text: (
        TEMPLATE_TYPE,
        {"userData": base64.b64encode(gzip.compress(text.encode())).decode()},
    ),
    "user data of aws-native": lambda text: (
        "aws-native:ec2:LaunchTemplate",
        {"launchTemplateData": {"userData": encoded(text)}},
    ),
    "user data of Karpenter": lambda text: (
        "kubernetes:karpenter.k8s.aws/v1:EC2NodeClass",
        {"spec": {"userData": text}},
    ),
}


def deployment(path: Path, value: Any) -> tuple[str, Props]:
    return "kubernetes:apps/v1:Deployment", with_value(COMPLIANT_DEPLOYMENT, path, value)


tokens = st.text(string.ascii_letters + string.digits, min_size=20, max_size=60).map(lambda text: f"hf_{text}")
# What may stand before a token; what follows it must not be a letter or digit, which would belong to it.
surroundings = st.text(st.characters(codec="ascii", categories=("L", "N", "P", "S", "Zs")), max_size=12)
separators = st.sampled_from(["", " ", "'", '"', "\n", ",", "-", "_", "@"])


@pytest.mark.parametrize("place", PLACES)
@settings(max_examples=40)
@given(token=tokens, before=surroundings, separator=separators, after=surroundings)
def test_a_token_is_found_in_every_place_and_never_repeated(
    place: str, token: str, before: str, separator: str, after: str
) -> None:
    resource_type, props = PLACES[place](f"{before}{token}{separator}{after}")
    verdict = judge(RULE, props, resource_type)
    assert len(verdict.violations) == 1
    assert "hf_" not in verdict.violations[0]
    assert token[3:] not in verdict.violations[0]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "text",
    [
        "",
        "hf_transfer",
        "HF_HUB_ENABLE_HF_TRANSFER=1",
        "from huggingface_hub import hf_hub_download",
        "hf_" + "a" * 19,
        "--hf-overrides hf_config_with_a_long_name_of_words",
        "export HF_TOKEN=$(cat /run/secrets/token)",
        "$(HF_TOKEN)",
        "${HF_TOKEN}",
        "TinyLlama/TinyLlama-1.1B-Chat-v1.0",
        "sha256:" + "ab01" * 16,
    ],
)
def test_what_only_resembles_a_token_is_left_alone(place: str, text: str) -> None:
    resource_type, props = PLACES[place](text)
    assert judge(RULE, props, resource_type).passed


def test_the_compliant_deployment_passes() -> None:
    assert judge(RULE, COMPLIANT_DEPLOYMENT).passed


@pytest.mark.parametrize("variable", ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_TOKEN"])
@pytest.mark.parametrize("container", [SERVER, SIDECAR, INIT])
def test_any_literal_in_a_token_variable_is_a_violation(variable: str, container: Path) -> None:
    [message] = judge_env({"name": variable, "value": "s3cr3t-of-another-form"}, container).violations
    assert f"{variable} is set to a literal" in message
    assert "env[0].value)" in message
    assert "secretKeyRef" in message
    assert "s3cr3t" not in message


@pytest.mark.parametrize(
    "value", ["", "  ", '""', "$(HF_TOKEN)", "${HF_TOKEN}", "$HF_TOKEN", "{{ .Values.token }}", None]
)
def test_an_expansion_or_nothing_in_a_token_variable_is_no_token(value: object) -> None:
    assert judge_env({"name": "HF_TOKEN", "value": value}).passed


@pytest.mark.parametrize("value", ["abc$(X)", "${X}abc", "$(X", "hf_short"])
def test_an_expansion_beside_a_literal_is_a_literal(value: str) -> None:
    assert judge_env({"name": "HF_TOKEN", "value": value}).violations


@pytest.mark.parametrize("reference", ["secretKeyRef", "fieldRef", "resourceFieldRef"])
def test_references_are_fine_except_to_a_config_map(reference: str) -> None:
    assert judge_env({"name": "HF_TOKEN", "valueFrom": {reference: {"name": "a", "key": "b"}}}).passed
    config_map = {"name": "HF_TOKEN", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}}
    assert "HF_TOKEN comes from a ConfigMap" in judge_env(config_map).violations[0]


def test_other_variables_may_come_from_a_config_map_and_have_literals() -> None:
    assert judge_env({"name": "MODEL", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "HF_TOKEN"}}}).passed
    assert judge_env({"name": "HF_TOKEN_PATH", "value": "/run/secrets/token"}).passed
    assert judge_env({"name": "HF_HOME", "value": "/cache"}).passed


def test_a_token_variable_as_a_key_of_a_config_map_or_of_helm_values_is_found() -> None:
    assert judge(RULE, {"data": {"HF_TOKEN": "literal"}}, CONFIG_MAP_TYPE).violations
    assert judge(RULE, {"data": {"HF_TOKEN": ""}}, CONFIG_MAP_TYPE).passed
    assert judge(RULE, {"values": {"env": {"HF_TOKEN": "literal"}}}, RELEASE_TYPE).violations
    assert judge(RULE, {"values": {"env": [{"name": "HF_TOKEN", "value": "literal"}]}}, RELEASE_TYPE).violations
    reference = {"secretName": "hf-token", "secretKey": "token"}
    assert judge(RULE, {"values": {"HF_TOKEN": reference}}, RELEASE_TYPE).passed


def test_a_token_as_a_key_is_found_and_its_path_is_redacted() -> None:
    [message] = judge(RULE, {"data": {TOKEN: "x"}}, CONFIG_MAP_TYPE).violations
    assert TOKEN not in message
    assert "<redacted>" in message


def test_all_tokens_of_a_resource_are_reported() -> None:
    props = with_value(COMPLIANT_DEPLOYMENT, (*SERVER, "env", 0, "value"), TOKEN)
    props = with_value(props, (*SERVER, "args", 0), f"--token {TOKEN}")
    props = with_value(props, (*INIT, "command", 1), TOKEN)
    assert len(judge(RULE, props).violations) == 3


def test_a_token_variable_that_holds_a_token_is_one_finding() -> None:
    assert len(judge_env({"name": "HF_TOKEN", "value": TOKEN}).violations) == 1


@pytest.mark.parametrize("field", ["data", "stringData"])
def test_a_secret_is_the_right_place(field: str) -> None:
    props = {"apiVersion": "v1", "kind": "Secret", field: {"HF_TOKEN": TOKEN, "encoded": encoded(TOKEN)}}
    assert judge(RULE, props, "kubernetes:core/v1:Secret").passed


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_each_kind_that_runs_pods_is_judged(kind: str) -> None:
    resource_type, props = ALL_KINDS[kind](thawed(COMPLIANT_POD_SPEC))
    assert judge(RULE, props, resource_type).passed
    resource_type, props = ALL_KINDS[kind](with_value(COMPLIANT_POD_SPEC, ("containers", 0, "args", 0), TOKEN))
    assert len(judge(RULE, props, resource_type).violations) == 1


@pytest.mark.parametrize(
    "user_data", ["#!/bin/bash\necho ok", encoded("#!/bin/bash"), encoded(mime("a: 1")), "", "%%%"]
)
def test_ordinary_user_data_passes(user_data: str) -> None:
    assert judge(RULE, {"userData": user_data}, TEMPLATE_TYPE).passed


def test_user_data_that_only_pretends_to_be_compressed_breaks_nothing() -> None:
    broken = base64.b64encode(b"\x1f\x8b" + b"not gzip at all").decode()
    assert judge(RULE, {"userData": broken}, TEMPLATE_TYPE).passed


def test_an_unknown_value_is_said_to_be_unjudged_and_hides_no_token() -> None:
    props = with_value(COMPLIANT_DEPLOYMENT, (*SERVER, "env", 0, "value"), UNKNOWN_STRING_VALUE)
    verdict = judge(RULE, with_value(props, (*SERVER, "args", 0), TOKEN))
    assert len(verdict.violations) == 1
    assert "env[0].value" in verdict.unjudged


@pytest.mark.parametrize("path", [("valueFrom",), ("value",), ("name",)])
def test_an_unknown_part_of_a_token_variable_is_no_violation(path: Path) -> None:
    entry = with_value({"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "a"}}}, path, UNKNOWN_OBJECT_VALUE)
    verdict = judge_env(entry)
    assert verdict.violations == ()
    assert verdict.unjudged
