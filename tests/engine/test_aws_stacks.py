"""The AWS stacks through the real engine: from VPC to ready Deployment, unchanged, changed, and down again in order.

Real: engine, Kubernetes provider, policy pack, control plane. Stand-ins: AWS and what is asked of it, EKS, the charts.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from neuron.instances import instance_type
from stand_ins import CHARTS
from stand_ins.account import opened_account
from stand_ins.toolchain import with_stand_ins
from tests.engine.cli import Ended
from tests.engine.events import Step, deletions, steps
from tests.engine.stack import Stack, copy_project, stack_values
from tools import toolchain
from tools.control_plane import ControlPlane, NodeGroup
from tools.control_plane.api import Api
from tools.environment import pulumi_environment

pytestmark = pytest.mark.long

# The nodes that the stacks would make: as many of each type as the largest of them has.
NODES = {"inf2.xlarge": 3, "trn1.2xlarge": 1, "trn2.3xlarge": 1}
TIME_FACTOR = 100.0
# Of the objects that the stacks have.
CRDS = ("prometheus-operator", "gateway-api", "envoy-gateway")

OpenStack = Callable[[str], AbstractContextManager[Stack]]


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """One control plane, which plays the EKS cluster of each stack in turn."""
    groups = tuple(NodeGroup(name.replace(".", "-"), instance_type(name), count) for name, count in NODES.items())
    directory = tmp_path_factory.mktemp("aws") / "control-plane"
    plane = ControlPlane(directory, groups, time_factor=TIME_FACTOR, crds=CRDS)
    try:
        plane.start()
        yield plane
    finally:
        plane.stop()


@pytest.fixture(scope="module")
def open_stack(tmp_path_factory: pytest.TempPathFactory, plane: ControlPlane) -> OpenStack:
    """A stack file of the checkout as a stack, with an account that fits it; only charts come from elsewhere.

    All stacks are of one project and know each other.
    """
    project = tmp_path_factory.mktemp("project") / "neuron-serving"
    copy_project(project)
    environment = pulumi_environment(project, with_stand_ins(toolchain.ensure(report=lambda _: None)))
    # Shows the option --event-log, as for Pulumi's Automation API.
    environment["PULUMI_DEBUG_COMMANDS"] = "true"

    @contextmanager
    def opened(name: str) -> Iterator[Stack]:
        stack = Stack(project, stack_values(name) | {"charts": {"folder": str(CHARTS)}}, environment, name)
        stack.write()
        with opened_account(stack.file, plane.kubeconfig) as account:
            stack.environment = environment | account
            succeeded(stack.run("stack", "init", name))
            try:
                yield stack
            finally:
                # What a failed test leaves would be in the way of the next.
                if stack.resources():
                    stack.destroy("--skip-preview")

    return opened


def succeeded(result: Ended) -> Ended:
    """A run that ended well."""
    assert result.exit_code == 0, result.output
    return result


def goes_up_and_stays(stack: Stack, *options: str) -> None:
    """Deploy under the policy pack; another preview, which needs no pack, then shows no change."""
    succeeded(stack.up(*options))
    succeeded(stack.run("preview", "--stack", stack.name, "--expect-no-changes"))


def goes_down(stack: Stack, events: Path) -> list[Step]:
    """Destroy; the deletions in the order in which they happened."""
    succeeded(stack.destroy("--skip-preview", "--event-log", str(events)))
    assert stack.resources() == []
    return deletions(events)


def available_replicas(plane: ControlPlane, namespace: str = "vllm") -> dict[str, int]:
    """Of every model server."""
    found = Api(plane.kubeconfig).get(f"/apis/apps/v1/namespaces/{namespace}/deployments")["items"]
    return {
        one["metadata"]["labels"]["app.kubernetes.io/instance"]: one["status"].get("availableReplicas", 0)
        for one in found
    }


def assert_gone_before(gone: list[Step], first: str, then: str) -> None:
    """What has `first` in its URN was gone before the deletion of anything with `then` began."""
    ends = [one.ended for one in gone if first in one.urn]
    begins = [one.began for one in gone if then in one.urn]
    assert ends, f"nothing was deleted that is a {first}"
    assert begins, f"nothing was deleted that is a {then}"
    assert max(ends) < min(begins), f"{then} began to go before {first} was gone"


def test_inf2_prod_goes_up_stays_is_replaced_by_another_type_and_goes_down_in_order(
    open_stack: OpenStack, plane: ControlPlane, tmp_path: Path
) -> None:
    with open_stack("inf2-prod") as stack:
        goes_up_and_stays(stack)
        assert available_replicas(plane) == {"tinyllama": 2}

        stack.values["nodeGroups"][0]["instanceType"] = "inf2.8xlarge"
        stack.values["quotas"]["inf"] = 128
        succeeded(stack.preview("--event-log", str(tmp_path / "changed")))
        replaced = {one.name for one in steps(tmp_path / "changed") if one.operation == "replace"}
        # A Job's pods cannot change: another type is another node selector.
        assert replaced == {"inferentia", "tinyllama-publish"}

        gone = goes_down(stack, tmp_path / "down")
    kept = [one for one in gone if one.is_retained]
    assert {one.type.partition("/")[0] for one in kept} == {"aws:s3"}
    assert {one.urn for one in gone if one.type.startswith("aws:s3/")} == {one.urn for one in kept}
    for first, then in (
        ("kubernetes:core/v1:Service::tinyllama", "kubernetes:apps/v1:Deployment::tinyllama"),
        ("kubernetes:apps/v1:Deployment::tinyllama", "index:Accelerator$kubernetes:"),
        # The Gateway has a load balancer; what makes and removes it lives longer, and so do its nodes.
        ("gateway.networking.k8s.io/v1:Gateway::", "helm.sh/v3:Release::envoy-gateway"),
        ("core/v1:Namespace::envoy-gateway-system", "helm.sh/v3:Release::load-balancer-controller"),
        ("helm.sh/v3:Release::load-balancer-controller", "aws:eks/nodeGroup:NodeGroup"),
        ("kubernetes:batch/v1:Job::", "index:Accelerator$kubernetes:"),
        ("index:Accelerator$kubernetes:helm.sh/v4:Chart$", "aws:eks/nodeGroup:NodeGroup::inferentia"),
        ("aws:eks/nodeGroup:NodeGroup", "aws:eks/cluster:Cluster"),
        ("aws:eks/podIdentityAssociation:", "aws:eks/cluster:Cluster"),
        ("aws:eks/addon:Addon", "aws:eks/cluster:Cluster"),
        ("aws:eks/cluster:Cluster", "aws:ec2/subnet:Subnet"),
        ("aws:ec2/subnet:Subnet", "aws:ec2/vpc:Vpc"),
    ):
        assert_gone_before(gone, first, then)


def test_workshop_joins_a_cluster_that_exists_and_can_be_set_as_the_labs_have_it(
    open_stack: OpenStack, plane: ControlPlane, tmp_path: Path
) -> None:
    with open_stack("workshop") as stack:
        goes_up_and_stays(stack)
        assert available_replicas(plane) == {"tinyllama": 1}

        stack.values["accelerator"] = {
            "schedulerExtension": "always",
            "kubeSchedulerImage": "public.ecr.aws/eks-distro/kubernetes/kube-scheduler:v1.36.0-eks-1-36-1",
            "nodeProblemDetector": "none",
        }
        succeeded(stack.preview("--event-log", str(tmp_path / "labs")))
        changed = {one.name: one.operation for one in steps(tmp_path / "labs") if one.operation != "same"}
        assert changed["neuron:kube-system/my-scheduler"] == "create"
        assert changed["neuron:kube-system/k8s-neuron-scheduler"] == "create"
        assert changed["neuron:neuron-healthcheck-system/node-problem-detector"] == "delete"
        assert changed["tinyllama"] == "update"

        gone = goes_down(stack, tmp_path / "down")
    assert not [one for one in gone if one.type == "aws:eks/cluster:Cluster"]
    assert_gone_before(gone, "kubernetes:apps/v1:Deployment::tinyllama", "aws:eks/nodeGroup:NodeGroup")


def test_trn2_prod_goes_up_in_its_reserved_capacity_and_down(
    open_stack: OpenStack, plane: ControlPlane, tmp_path: Path
) -> None:
    with open_stack("trn2-prod") as stack:
        goes_up_and_stays(stack, "--skip-preview")
        assert available_replicas(plane) == {"qwen3-8b": 1}
        goes_down(stack, tmp_path / "down")


def test_a_serving_stack_deploys_to_the_cluster_of_a_platform_stack_and_leaves_it(
    open_stack: OpenStack, plane: ControlPlane, tmp_path: Path
) -> None:
    with open_stack("platform") as platform:
        goes_up_and_stays(platform, "--skip-preview")
        assert available_replicas(plane) == {}
        with open_stack("serving") as serving:
            goes_up_and_stays(serving, "--skip-preview")
            assert available_replicas(plane) == {"tinyllama": 1, "tinyllama-trainium": 1}
            gone = goes_down(serving, tmp_path / "serving")
        assert not [one for one in gone if one.type in ("aws:eks/cluster:Cluster", "aws:eks/nodeGroup:NodeGroup")]
        goes_down(platform, tmp_path / "platform")
