"""Faults below the model servers: cluster, node groups made here, accelerator, charts, quotas."""

from collections.abc import Mapping
from typing import Any

import pytest

from components.configuration import parse_settings
from tests.unit import configuration
from tests.unit.configuration import MODEL, changed, encoded

CREATED: Mapping[str, Any] = {
    "cluster": {
        "mode": "create",
        "version": "1.36",
        "publicAccessCidrs": ["203.0.113.0/24"],
        "vpcCidr": "10.0.0.0/16",
    },
    "nodeGroups": [
        {
            "name": "trainium",
            "instanceType": "trn1.2xlarge",
            "nodes": 1,
            "create": {"amiRelease": "1.36.2-20260625", "updateStrategy": "DEFAULT"},
        }
    ],
    "accelerator": {},
    "serving": [
        {
            "name": "tinyllama",
            "imageLine": "nxdi-0.13",
            "nodeGroup": "trainium",
            "replicas": 1,
            "model": MODEL,
        }
    ],
}
SIXTEEN_CHIPS = {
    "nodeGroups.0.instanceType": "trn1.32xlarge",
    "serving.0.model.tensorParallel": 8,
}


def lines(changes: Mapping[str, Any]) -> list[str]:
    return configuration.lines(changes, CREATED)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"serving": None},
        {"cluster.publicAccessCidrs": []},
        {"nodeGroups.0.create.amiRelease": "20260625"},
        {"cluster.vpcCidr": None, "cluster.subnetIds": ["subnet-0a", "subnet-0b"]},
        {"quotas": {"trn": 16}},
        {"quotas": {"trn": 8}, "nodeGroups.0.create.updateStrategy": "MINIMAL"},
        {"quotas": {"trn": 0}, "nodeGroups.0.create": {"purchase": "capacity-block", "reservationId": "cr-0a"}},
        {"accelerator.devices": "dra", "serving": None},
        {
            **SIXTEEN_CHIPS,
            "accelerator.kubeSchedulerImage": "public.ecr.aws/eks-distro/kubernetes/kube-scheduler:v1.36.1-eks-1-36-4",
        },
    ],
    ids=str,
)
def test_a_good_stack_is_taken(changes: dict[str, Any]) -> None:
    parse_settings(encoded(changed(changes, CREATED)))


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"cluster.version": 1.36},
            "cluster.version: found 1.36; allowed: a valid string; fix: put it in quotes",
        ),
        (
            {"cluster.publicAccessCidrs": ["203.0.113.7/24"]},
            'cluster.publicAccessCidrs[0]: found "203.0.113.7/24"; allowed: an IPv4 network, such as 203.0.113.0/24; '
            "fix: write it in that form",
        ),
        (
            {"cluster.publicAccessCidrs": ["0.0.0.0/0"]},
            "cluster.publicAccessCidrs: found 0.0.0.0/0; allowed: the networks from which the cluster's API is used; "
            "an empty list for the VPC alone; fix: name the networks",
        ),
        (
            {"cluster.vpcCidr": None},
            "cluster: found neither vpcCidr nor subnetIds; allowed: one of the two: a VPC made here, or subnets that "
            "exist; fix: set one",
        ),
        (
            {"cluster.vpcCidr": "10.0.0.0/24"},
            "cluster.vpcCidr: found 10.0.0.0/24; allowed: a network between /16 and /20; fix: set 10.0.0.0/16",
        ),
        (
            {"cluster.addons": {"efs-csi": "default"}},
            "cluster.addons.efs-csi: found an unknown key; allowed: vpc-cni, kube-proxy, eks-pod-identity-agent, "
            "coredns, metrics-server, aws-mountpoint-s3-csi-driver, aws-secrets-store-csi-driver-provider, "
            "amazon-cloudwatch-observability; "
            "fix: remove it",
        ),
        (
            {"accelerator": None},
            "accelerator: found nothing, in a stack that makes its cluster; allowed: a section; "
            "fix: set accelerator: {}",
        ),
        (
            {"nodeGroups.0.create.amiRelease": "latest"},
            "nodeGroups[0].create.amiRelease: found latest; allowed: a release such as 1.36.2-20260714, or its date, "
            "20260714; fix: correct the release",
        ),
        (
            {"nodeGroups.0.create.amiRelease": "1.35.3-20260625"},
            "nodeGroups[0].create.amiRelease: found 1.35.3-20260625; allowed: a release for Kubernetes 1.36 "
            "(cluster.version); fix: pin one, or its date alone",
        ),
        (
            {"nodeGroups.0.create.amiRelease": "1.36.2-20260714"},
            "nodeGroups[0].create.amiRelease: found AMI release 1.36.2-20260714 has driver 2.29.0, nxdi-0.13 needs "
            "2.28 or older; allowed: a release with a driver in that range; "
            "fix: pin the release of 20260625, the newest known one",
        ),
        (
            {"nodeGroups.0.create.amiRelease": "20260714"},
            "nodeGroups[0].create.amiRelease: found AMI release 20260714 has driver 2.29.0, nxdi-0.13 needs "
            "2.28 or older; allowed: a release with a driver in that range; "
            "fix: pin the release of 20260625, the newest known one",
        ),
        (
            {"nodeGroups.0.create.minNodes": 2},
            "nodeGroups[0].create.minNodes: found 2; allowed: 1 (nodes) or less; fix: lower it",
        ),
        (
            {"nodeGroups.0.create.purchase": "capacity-block"},
            "nodeGroups[0].create.reservationId: found none with purchase capacity-block; "
            "allowed: one with capacity-reservation or capacity-block, none else; fix: set it",
        ),
        (
            {"nodeGroups.0.create.reservationId": "cr-0a1b"},
            "nodeGroups[0].create.reservationId: found one with purchase on-demand; "
            "allowed: one with capacity-reservation or capacity-block, none else; fix: leave it out",
        ),
        (
            {"quotas": {"trn": 8}},
            "nodeGroups: found trn on-demand: 8 (1 x trn1.2xlarge) + 8 (update surge 1) = 16 of 8 vCPUs "
            "(L-2C3B7624, declared in the stack file: 8); allowed: 8 vCPUs; "
            "fix: lower nodes, set updateStrategy MINIMAL, or have the quota raised",
        ),
        (
            {"accelerator.devices": "dra"},
            "accelerator.devices: found dra, beside model servers that ask for aws.amazon.com/neuron; "
            "allowed: device-plugin: only the device plugin offers that resource, and DRA excludes the plugin; "
            "fix: set device-plugin",
        ),
        (
            {**SIXTEEN_CHIPS},
            "accelerator.kubeSchedulerImage: found none, though the scheduler extension is installed: a pod takes "
            "several chips of a node but not all; allowed: the kube-scheduler image of the cluster's minor version: "
            "the chart's own is of 1.31; "
            "fix: set public.ecr.aws/eks-distro/kubernetes/kube-scheduler with the tag of your version",
        ),
        (
            {"accelerator.kubeSchedulerImage": "kube-scheduler:v1.31.12-eks-1-31-30"},
            "accelerator.kubeSchedulerImage: found kube-scheduler:v1.31.12-eks-1-31-30; allowed: a kube-scheduler of "
            "the cluster's Kubernetes 1.36; fix: use a tag that begins with v1.36.",
        ),
        (
            {"charts": {"folder": "charts", "mirror": "oci://registry.example.com/charts"}},
            "charts: found folder beside mirror; allowed: one of the two; fix: drop one",
        ),
        (
            {"cluster": {"mode": "stack", "stack": "org/neuron-serving/platform"}, "accelerator": None},
            "nodeGroups[0].create: found a node group made in a cluster of mode stack; allowed: mode create or "
            "existing: node groups are made with the cluster's EKS name; fix: leave create out, or change cluster.mode",
        ),
        (
            {
                "cluster": {"mode": "kubeconfig", "kubeconfig": "kubeconfig"},
                "nodeGroups.0.create": None,
            },
            "accelerator.nodeProblemDetector: found recover in a cluster of mode kubeconfig; allowed: none or detect: "
            "recovery needs a role, bound to the cluster by its EKS name; fix: set detect",
        ),
        (
            {
                "cluster": {"mode": "kubeconfig", "kubeconfig": "kubeconfig"},
                "nodeGroups.0.create": None,
                "accelerator": None,
                "modelCache": {"backend": "s3"},
            },
            "modelCache.backend: found s3 in a cluster of mode kubeconfig; allowed: hostpath: pods get their right to "
            "a bucket by the cluster's EKS name; fix: set hostpath, or another cluster.mode",
        ),
        (
            {"nodeGroups.0.instanceType": "inf2.xlarge", "nodeGroups.0.create.diskGib": 40},
            "nodeGroups[0].create.diskGib: found 40, for the system, the image and the pods that a node may hold; "
            "allowed: 66 or more; fix: set 66",
        ),
        (
            {"modelCache": {"backend": "s3", "createBucket": False}},
            "modelCache.bucket: found nothing, with createBucket false; allowed: the name of a bucket that exists; "
            "fix: set it",
        ),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_a_fault_is_one_line(changes: dict[str, Any], line: str) -> None:
    assert lines(changes) == [line]


def test_two_bad_entries_of_one_list_are_two_faults_beside_all_others() -> None:
    found = lines({"cluster.publicAccessCidrs": ["x", "203.0.113.0/24", "y"], "nodeGroups.0.create.minNodes": 3})
    assert {line.partition(": ")[0] for line in found} == {
        "cluster.publicAccessCidrs[0]",
        "cluster.publicAccessCidrs[2]",
        "nodeGroups[0].create.minNodes",
    }


def test_a_misspelt_key_of_a_created_node_group_shows_the_known_ones() -> None:
    (line,) = lines({"nodeGroups.0.create.amiReleas": "1.36.2-20260625"})
    assert line.startswith("nodeGroups[0].create.amiReleas: found an unknown key; allowed: provisioner, amiRelease, ")


def test_the_limits_of_a_karpenter_pool_count_against_the_quota() -> None:
    (line,) = lines(
        {
            "nodeGroups.0.nodes": 2,
            "nodeGroups.0.create": {"provisioner": "karpenter"},
            "quotas": {"trn": 8},
        }
    )
    assert "trn on-demand: 16 (limit of NodePool trainium) = 16 of 8 vCPUs" in line


def test_karpenter_buys_no_reserved_capacity_and_has_no_fewest_nodes() -> None:
    reserved = {"purchase": "capacity-block", "reservationId": "cr-0a1b", "minNodes": 1}
    found = lines({"nodeGroups.0.create": {"provisioner": "karpenter", **reserved}})
    assert [line.partition(":")[0] for line in found] == [
        "nodeGroups[0].create.purchase",
        "nodeGroups[0].create.minNodes",
    ]
