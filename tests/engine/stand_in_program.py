"""A program from VPC to Kubernetes object, for the test of the stand-ins."""

import json

import pulumi
import pulumi_aws as aws
import pulumi_eks as eks
import pulumi_kubernetes as kubernetes

config = pulumi.Config()
zones = aws.get_availability_zones(state="available").names
vpc = aws.ec2.Vpc("main", cidr_block="10.0.0.0/16", tags={"Name": "main"})
subnets = [
    aws.ec2.Subnet(f"private-{index}", vpc_id=vpc.id, cidr_block=f"10.0.{index}.0/24", availability_zone=zones[index])
    for index in range(2)
]
subnet_ids = [subnet.id for subnet in subnets]
cluster = eks.Cluster(
    "serving",
    name="serving",
    version="1.35",
    authentication_mode=eks.AuthenticationMode.API,
    vpc_id=vpc.id,
    private_subnet_ids=subnet_ids,
    skip_default_node_group=True,
    endpoint_private_access=True,
    enabled_cluster_log_types=["audit"],
    access_entries={"operator": eks.AccessEntryArgs(principal_arn="arn:aws:iam::123456789012:role/operator")},
)
role = aws.iam.Role(
    "nodes",
    assume_role_policy=json.dumps(
        {
            "Version": "2012-10-17",
            "Statement": [
                {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "ec2.amazonaws.com"}}
            ],
        }
    ),
)
template = aws.ec2.LaunchTemplate("nodes", metadata_options={"http_put_response_hop_limit": 2})
aws.eks.NodeGroup(
    "neuron",
    cluster_name=cluster.eks_cluster.name,
    node_role_arn=role.arn,
    subnet_ids=subnet_ids,
    ami_type="AL2023_x86_64_NEURON",
    instance_types=[config.require("instanceType")],
    launch_template={"id": template.id, "version": template.latest_version.apply(str)},
    scaling_config={"desired_size": 1, "max_size": 2, "min_size": 1},
)
kubernetes.core.v1.ConfigMap(
    "greeting",
    metadata={"name": "stand-in-greeting", "namespace": "default"},
    data={"cluster": cluster.eks_cluster.arn},
    opts=pulumi.ResourceOptions(provider=kubernetes.Provider("serving", kubeconfig=cluster.kubeconfig_json)),
)
pulumi.export("oidcIssuer", cluster.oidc_issuer)
pulumi.export("coreVpcId", cluster.core.vpc_id)
