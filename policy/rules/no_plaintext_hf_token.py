"""no-plaintext-hf-token: a Hugging Face token stands in a Secret and nowhere else."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from pulumi_policy import Severity

from policy.manifests import Manifest, Subject, manifests
from policy.resources import Resource
from policy.rule import Rule, Violation
from policy.tokens import TOKEN_VARIABLES, decoded, holds_token, is_literal, user_data_texts
from policy.values import Node
from policy.workloads import workloads

_Path = tuple[str, ...]

# What of a container holds text that a person writes: variables, command lines, hooks, probes with their headers.
_CONTAINER_FIELDS = ("env", "command", "args", "lifecycle", "startupProbe", "readinessProbe", "livenessProbe")

# Other places in Kubernetes objects, by API group and kind.
_OBJECT_FIELDS: Mapping[tuple[str, str], tuple[_Path, ...]] = MappingProxyType(
    {
        ("", "ConfigMap"): (("data",),),
        ("ray.io", "RayService"): (("spec", "serveConfigV2"),),
        ("ray.io", "RayJob"): (("spec", "runtimeEnvYAML"), ("spec", "entrypoint")),
        ("helm.toolkit.fluxcd.io", "HelmRelease"): (("spec", "values"),),
        ("argoproj.io", "Application"): (("spec", "source", "helm"), ("spec", "sources")),
    }
)

# User data of EC2 instances, by resource type.
_USER_DATA: Mapping[str, tuple[_Path, ...]] = MappingProxyType(
    {
        "aws:ec2/launchTemplate:LaunchTemplate": (("userData",),),
        "aws:ec2/launchConfiguration:LaunchConfiguration": (("userData",), ("userDataBase64",)),
        "aws:ec2/instance:Instance": (("userData",), ("userDataBase64",)),
        "aws:ec2/spotInstanceRequest:SpotInstanceRequest": (("userData",), ("userDataBase64",)),
        "aws-native:ec2:LaunchTemplate": (("launchTemplateData", "userData"),),
        "aws-native:ec2:Instance": (("userData",),),
        "eks:index:ManagedNodeGroup": (("userData",),),
        "eks:index:NodeGroup": (("nodeUserData",), ("nodeUserDataOverride",)),
        "eks:index:NodeGroupV2": (("nodeUserData",), ("nodeUserDataOverride",)),
    }
)
_KARPENTER_NODE_CLASS = ("karpenter.k8s.aws", "EC2NodeClass")
_HELM_TYPES = "kubernetes:helm.sh/"

_FIX_REFERENCE = "put the token into a Secret and refer to it by valueFrom.secretKeyRef"
_FIX_REMOVE = "take the token out; let a container read it from a Secret by valueFrom.secretKeyRef"


def judge(resource: Resource) -> Iterator[Violation]:
    """One violation for each place in which a token stands or a token variable is set to a literal."""
    yield from _in_containers(resource)
    for manifest in manifests(resource):
        yield from _in_objects(manifest)
    yield from _in_helm_values(resource)
    yield from _in_user_data(resource)


def _in_containers(resource: Resource) -> Iterator[Violation]:
    for workload in workloads(resource):
        for container in workload.containers():
            for field in _CONTAINER_FIELDS:
                for node, what in _findings(container.node.at(field)):
                    yield Violation(what, workload.place(container, node), _FIX_REFERENCE, workload.manifest)


def _in_objects(manifest: Manifest) -> Iterator[Violation]:
    for path in _OBJECT_FIELDS.get((manifest.group, manifest.kind), ()):
        for node, what in _findings(manifest.node.at(*path)):
            yield Violation(what, f"{manifest} ({node.path})", _FIX_REMOVE, manifest)
    if manifest.is_a("", "ConfigMap"):
        for _, node in manifest.node.at("binaryData").fields():
            if holds_token(decoded(node.text() or "") or ""):
                yield Violation("a Hugging Face token in base64", f"{manifest} ({node.path})", _FIX_REMOVE, manifest)
    if manifest.is_a(*_KARPENTER_NODE_CLASS):
        yield from _in_one_user_data(manifest.node.at("spec", "userData"), manifest)


def _in_helm_values(resource: Resource) -> Iterator[Violation]:
    if not resource.type.startswith(_HELM_TYPES):
        return
    owner = f"Helm release {resource.name}"
    for node, what in _findings(resource.props.at("values")):
        yield Violation(what, f"{owner} ({node.path})", _FIX_REMOVE, resource)
    for node in resource.props.at("valueYamlFiles").elements():
        if holds_token(node.asset_text() or ""):
            yield Violation("a Hugging Face token in plain text", f"{owner} ({node.path})", _FIX_REMOVE, resource)


def _in_user_data(resource: Resource) -> Iterator[Violation]:
    for path in _USER_DATA.get(resource.type, ()):
        yield from _in_one_user_data(resource.props.at(*path), resource)


def _in_one_user_data(node: Node, owner: Subject) -> Iterator[Violation]:
    if any(holds_token(text) for text in user_data_texts(node.text() or "")):
        yield Violation("a Hugging Face token in user data", f"{owner} ({node.path})", _FIX_REMOVE, owner)


def _findings(node: Node) -> Iterator[tuple[Node, str]]:
    """Every place at or below the node that shows a token, with what is wrong there.

    Variables are found as `{name: X, value: y}`, as Kubernetes has them, and as `{X: y}`, as ConfigMaps and charts do.
    """
    if holds_token(node.text() or ""):
        yield node, "a Hugging Face token in plain text"
    entry_name = node.at("name").quiet().text()
    if entry_name in TOKEN_VARIABLES and node.at("valueFrom", "configMapKeyRef").is_present():
        yield node, f"{entry_name} comes from a ConfigMap"
    for key, below in node.fields():
        variable = entry_name if key == "value" else key
        if variable in TOKEN_VARIABLES and is_literal(below.text() or ""):
            yield below, f"{variable} is set to a literal"
        elif holds_token(key):
            yield below, "a Hugging Face token as a key"
        else:
            yield from _findings(below)
    for below in node.elements():
        yield from _findings(below)


RULE = Rule(
    id="no-plaintext-hf-token",
    title="A Hugging Face token stands in a Secret only",
    severity=Severity.CRITICAL,
    why=(
        "everyone who may read ConfigMaps, pod specs or node configuration reads the token there; the measured system "
        "kept it in a Secret and, for all to see, a second time in a ConfigMap."
    ),
    remediation=(
        "Revoke the token: what has been in plain text is no longer secret.",
        "Put the new one into a Secret, from `pulumi config set --secret` or an external store.",
        "Refer to it by env[].valueFrom.secretKeyRef.",
    ),
    judge_resource=judge,
)
