"""The cluster component: which resources the real one makes where no default node group is wanted."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as kubernetes

from stand_ins.kubeconfig import eks_kubeconfig

# What the stand-in does with inputs; a program that uses others is told so.
INPUTS = frozenset(
    {
        "accessEntries",
        "authenticationMode",
        "bootstrapSelfManagedAddons",
        "clusterSecurityGroupTags",
        "clusterTags",
        # Of the default node group, or of an add-on that only comes with it.
        "corednsAddonOptions",
        "nodeAssociatePublicIpAddress",
        "createOidcProvider",
        "deletionProtection",
        "enabledClusterLogTypes",
        "encryptionConfigKeyArn",
        "endpointPrivateAccess",
        "endpointPublicAccess",
        "kubeProxyAddonOptions",
        "name",
        "nodeSecurityGroupTags",
        "providerCredentialOpts",
        "publicAccessCidrs",
        "serviceRole",
        "skipDefaultNodeGroup",
        "skipDefaultSecurityGroups",
        "subnetIds",
        "privateSubnetIds",
        "publicSubnetIds",
        "tags",
        "upgradePolicy",
        "useDefaultVpcCni",
        "version",
        "vpcCniOptions",
        "vpcId",
    }
)
_SERVICE_POLICY = "AmazonEKSClusterPolicy"
_OVERWRITE: Mapping[str, Any] = {"resolve_conflicts_on_create": "OVERWRITE", "resolve_conflicts_on_update": "OVERWRITE"}
_ALL: dict[str, Any] = {"from_port": 0, "to_port": 0, "protocol": "-1"}
_RULES: Mapping[str, dict[str, Any]] = {
    "eksClusterInternetEgressRule": {
        "description": "Allow internet access.",
        "type": "egress",
        "cidr_blocks": ["0.0.0.0/0"],
        **_ALL,
    },
    "eksNodeIngressRule": {
        "description": "Allow nodes to communicate with each other",
        "type": "ingress",
        "self": True,
        **_ALL,
    },
    "eksNodeClusterIngressRule": {
        "description": "Allow worker Kubelets and pods to receive communication from the cluster control plane",
        "type": "ingress",
        "from_port": 1025,
        "to_port": 65535,
        "protocol": "tcp",
    },
    "eksExtApiServerClusterIngressRule": {
        "description": "Allow pods running extension API servers on port 443 to receive communication from"
        " cluster control plane",
        "type": "ingress",
        "from_port": 443,
        "to_port": 443,
        "protocol": "tcp",
    },
    "eksNodeInternetEgressRule": {
        "description": "Allow internet access.",
        "type": "egress",
        "cidr_blocks": ["0.0.0.0/0"],
        **_ALL,
    },
    "eksClusterIngressRule": {
        "description": "Allow pods to communicate with the cluster API Server",
        "type": "ingress",
        "from_port": 443,
        "to_port": 443,
        "protocol": "tcp",
    },
}
_CNI_ENVIRONMENT = {
    "WARM_ENI_TARGET": "1",
    "AWS_VPC_K8S_CNI_LOGLEVEL": "DEBUG",
    "AWS_VPC_K8S_CNI_LOG_FILE": "/host/var/log/aws-routed-eni/ipamd.log",
    "AWS_VPC_K8S_CNI_VETHPREFIX": "eni",
    "AWS_VPC_ENI_MTU": "9001",
    "AWS_VPC_K8S_PLUGIN_LOG_LEVEL": "DEBUG",
    "AWS_VPC_K8S_PLUGIN_LOG_FILE": "/var/log/aws-routed-eni/plugin.log",
    "ENABLE_POD_ENI": "false",
    "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG": "false",
    "AWS_VPC_K8S_CNI_EXTERNALSNAT": "false",
}


class Cluster(pulumi.ComponentResource):
    """eks:index:Cluster. `outputs` are those that the pulumi-eks SDK declares, by wire name."""

    outputs: dict[str, pulumi.Input[Any]]

    def __init__(self, name: str, inputs: Mapping[str, Any], opts: pulumi.ResourceOptions | None) -> None:
        super().__init__("eks:index:Cluster", name, dict(inputs), opts)
        self._name = name
        self._inputs = inputs
        self._tags = inputs.get("tags")
        role = inputs.get("serviceRole") or _ServiceRole(f"{name}-eksRole", self._tags, self).role
        has_groups = not inputs.get("skipDefaultSecurityGroups")
        security_group = self._cluster_security_group() if has_groups else None
        cluster = self._cluster(pulumi.Output.from_input(role).apply(lambda made: made.arn), security_group)
        self._add_ons(cluster)
        kubeconfig = pulumi.Output.all(
            cluster.name, cluster.endpoint, cluster.certificate_authority, cluster.arn
        ).apply(lambda facts: eks_kubeconfig(facts[0], facts[1], facts[2]["data"], region=facts[3].split(":")[3]))
        provider = kubernetes.Provider(f"{name}-eks-k8s", kubeconfig=_json(kubeconfig), opts=self._child())
        self._access_entries(cluster)
        oidc_provider = self._oidc_provider(cluster)
        node_security_group, ingress_rule = (
            self._node_security_group(cluster, security_group) if security_group else (None, None)
        )
        eks_group_id = cluster.vpc_config.apply(lambda config: config["cluster_security_group_id"])
        issuer = cluster.identities.apply(lambda identities: identities[0]["oidcs"][0]["issuer"])
        self.outputs = {
            "autoModeNodeRoleName": "",
            "clusterIngressRuleId": ingress_rule.security_group_rule_id if ingress_rule else "",
            "clusterSecurityGroup": security_group,
            "clusterSecurityGroupId": security_group.id if security_group else eks_group_id,
            "core": {
                "cluster": cluster,
                "clusterIamRole": role,
                "clusterSecurityGroup": security_group,
                "endpoint": cluster.endpoint,
                "instanceRoles": [],
                "kubeconfig": kubeconfig,
                "nodeGroupOptions": {"nodeSecurityGroup": node_security_group, "clusterIngressRule": ingress_rule},
                "provider": provider,
                "subnetIds": self._subnet_ids(),
                "tags": self._tags,
                "vpcId": inputs["vpcId"],
            },
            "defaultNodeGroupAsgName": "",
            "eksCluster": cluster,
            "eksClusterIngressRule": ingress_rule,
            "fargateProfileId": "",
            "fargateProfileStatus": "",
            "instanceRoles": [],
            "kubeconfig": kubeconfig,
            "kubeconfigJson": _json(kubeconfig),
            "nodeSecurityGroup": node_security_group,
            "nodeSecurityGroupId": node_security_group.id if node_security_group else eks_group_id,
            "oidcIssuer": issuer.apply(lambda url: url.removeprefix("https://")),
            "oidcProviderArn": oidc_provider.arn if oidc_provider else "",
            "oidcProviderUrl": issuer,
        }
        self.register_outputs(self.outputs)

    def _child(self, **options: Any) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self, **options)

    def _subnet_ids(self) -> pulumi.Input[list[str]]:
        inputs = self._inputs
        stated: pulumi.Input[list[str]] | None = inputs.get("subnetIds")
        if stated is not None:
            return stated
        both = pulumi.Output.all(inputs.get("publicSubnetIds") or [], inputs.get("privateSubnetIds") or [])
        return both.apply(lambda ids: [*ids[0], *ids[1]])

    def _named(self, resource: str, *tags: Any, **more: pulumi.Input[str]) -> pulumi.Output[dict[str, str]]:
        """Tags: a name, and over it those of the program."""
        base = pulumi.Output.from_input({"Name": resource, **more})
        return pulumi.Output.all(base, *tags).apply(
            lambda every: {key: value for given in every for key, value in (given or {}).items()}
        )

    def _cluster_security_group(self) -> aws.ec2.SecurityGroup:
        name = f"{self._name}-eksClusterSecurityGroup"
        group = aws.ec2.SecurityGroup(
            name,
            vpc_id=self._inputs["vpcId"],
            revoke_rules_on_delete=True,
            tags=self._named(name, self._inputs.get("clusterSecurityGroupTags"), self._tags),
            opts=self._child(),
        )
        self._rule("eksClusterInternetEgressRule", group.id)
        return group

    def _cluster(self, role_arn: pulumi.Output[str], group: aws.ec2.SecurityGroup | None) -> aws.eks.Cluster:
        name, inputs = f"{self._name}-eksCluster", self._inputs
        key_arn, mode = inputs.get("encryptionConfigKeyArn"), inputs.get("authenticationMode")
        return aws.eks.Cluster(
            name,
            name=inputs.get("name"),
            role_arn=role_arn,
            version=inputs.get("version"),
            bootstrap_self_managed_addons=inputs.get("bootstrapSelfManagedAddons", True),
            vpc_config=aws.eks.ClusterVpcConfigArgs(
                security_group_ids=[group.id] if group else None,
                subnet_ids=self._subnet_ids(),
                endpoint_private_access=inputs.get("endpointPrivateAccess"),
                endpoint_public_access=inputs.get("endpointPublicAccess"),
                public_access_cidrs=inputs.get("publicAccessCidrs"),
            ),
            access_config={"authentication_mode": mode, "bootstrap_cluster_creator_admin_permissions": True}
            if mode
            else None,
            encryption_config={"provider": {"key_arn": key_arn}, "resources": ["secrets"]} if key_arn else None,
            enabled_cluster_log_types=inputs.get("enabledClusterLogTypes"),
            upgrade_policy=inputs.get("upgradePolicy"),
            deletion_protection=inputs.get("deletionProtection"),
            tags=self._named(name, inputs.get("clusterTags"), self._tags),
            opts=self._child(
                ignore_changes=[
                    "accessConfig.bootstrapClusterCreatorAdminPermissions",
                    "bootstrapSelfManagedAddons",
                ]
            ),
        )

    def _add_ons(self, cluster: aws.eks.Cluster) -> None:
        kube_proxy = self._inputs.get("kubeProxyAddonOptions") or {}
        if kube_proxy.get("enabled", True):
            aws.eks.Addon(
                f"{self._name}-kube-proxy",
                cluster_name=cluster.name,
                addon_name="kube-proxy",
                addon_version=kube_proxy.get("version") or _newest("kube-proxy", cluster, self),
                configuration_values=_configuration(kube_proxy.get("configurationValues")),
                preserve=True,
                tags=self._tags,
                opts=self._child(),
                **_OVERWRITE,
            )
        if not self._inputs.get("useDefaultVpcCni"):
            options = self._inputs.get("vpcCniOptions") or {}
            _VpcCniAddon(f"{self._name}-vpc-cni", options, cluster, self._tags, self)

    def _access_entries(self, cluster: aws.eks.Cluster) -> None:
        if self._inputs.get("authenticationMode") == "CONFIG_MAP":
            return
        for key, entry in (self._inputs.get("accessEntries") or {}).items():
            name = f"{self._name}-{key}"
            made = aws.eks.AccessEntry(
                name,
                cluster_name=cluster.name,
                principal_arn=entry["principalArn"],
                type=entry.get("type"),
                kubernetes_groups=entry.get("kubernetesGroups"),
                user_name=entry.get("username"),
                tags=entry.get("tags"),
                opts=self._child(depends_on=[cluster]),
            )
            for association, policy in (entry.get("accessPolicies") or {}).items():
                aws.eks.AccessPolicyAssociation(
                    f"{name}-{association}",
                    cluster_name=cluster.name,
                    principal_arn=entry["principalArn"],
                    policy_arn=policy["policyArn"],
                    access_scope=policy["accessScope"],
                    opts=pulumi.ResourceOptions(parent=made, depends_on=[made]),
                )

    def _oidc_provider(self, cluster: aws.eks.Cluster) -> aws.iam.OpenIdConnectProvider | None:
        """The real one reads the thumbprint from the issuer over the network; this one makes it up."""
        if not self._inputs.get("createOidcProvider"):
            return None
        issuer = cluster.identities.apply(lambda identities: identities[0]["oidcs"][0]["issuer"])
        return aws.iam.OpenIdConnectProvider(
            f"{self._name}-oidcProvider",
            client_id_lists=["sts.amazonaws.com"],
            url=issuer,
            thumbprint_lists=issuer.apply(lambda url: [_sha1(url)]),
            opts=self._child(),
        )

    def _node_security_group(
        self, cluster: aws.eks.Cluster, cluster_group: aws.ec2.SecurityGroup
    ) -> tuple[aws.ec2.SecurityGroup, aws.ec2.SecurityGroupRule]:
        """The group and the rule by which nodes reach the API server."""
        name = f"{self._name}-nodeSecurityGroup"
        owned = cluster.name.apply(lambda cluster_name: {f"kubernetes.io/cluster/{cluster_name}": "owned"})
        group = aws.ec2.SecurityGroup(
            name,
            vpc_id=self._inputs["vpcId"],
            revoke_rules_on_delete=True,
            tags=self._named(name, owned, self._inputs.get("nodeSecurityGroupTags"), self._tags),
            opts=self._child(),
        )
        self._rule("eksNodeIngressRule", group.id)
        self._rule("eksNodeClusterIngressRule", group.id, cluster_group.id)
        self._rule("eksExtApiServerClusterIngressRule", group.id, cluster_group.id)
        self._rule("eksNodeInternetEgressRule", group.id)
        return group, self._rule("eksClusterIngressRule", cluster_group.id, group.id)

    def _rule(
        self, rule: str, group_id: pulumi.Output[str], source_id: pulumi.Output[str] | None = None
    ) -> aws.ec2.SecurityGroupRule:
        return aws.ec2.SecurityGroupRule(
            f"{self._name}-{rule}",
            security_group_id=group_id,
            source_security_group_id=source_id,
            opts=self._child(),
            **_RULES[rule],
        )


class _ServiceRole(pulumi.ComponentResource):
    """The role with which EKS manages the cluster."""

    role: aws.iam.Role

    def __init__(self, name: str, tags: Any, parent: pulumi.Resource) -> None:
        super().__init__("eks:index:ServiceRole", name, {}, pulumi.ResourceOptions(parent=parent))
        statement = {
            "Action": ["sts:AssumeRole", "sts:TagSession"],
            "Effect": "Allow",
            "Principal": {"Service": ["eks.amazonaws.com"]},
        }
        self.role = aws.iam.Role(
            f"{name}-role",
            description="Allows EKS to manage clusters on your behalf.",
            assume_role_policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]}),
            tags=tags,
            opts=pulumi.ResourceOptions(parent=self),
        )
        partition = aws.get_partition_output(opts=pulumi.InvokeOutputOptions(parent=self)).partition
        aws.iam.RolePolicyAttachment(
            f"{name}-{_sha1(f'arn:aws:iam::aws:policy/{_SERVICE_POLICY}')[:8]}",
            role=self.role.name,
            policy_arn=pulumi.Output.concat("arn:", partition, f":iam::aws:policy/{_SERVICE_POLICY}"),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({"directRole": self.role, "resolvedRole": self.role})


class _VpcCniAddon(pulumi.ComponentResource):
    """The add-on vpc-cni in a component of its own, as in the real one."""

    def __init__(
        self, name: str, options: Mapping[str, Any], cluster: aws.eks.Cluster, tags: Any, parent: pulumi.Resource
    ) -> None:
        super().__init__("eks:index:VpcCniAddon", name, {}, pulumi.ResourceOptions(parent=parent))
        given = options.get("configurationValues") or {}
        addon = aws.eks.Addon(
            name,
            cluster_name=cluster.name,
            addon_name="vpc-cni",
            addon_version=options.get("addonVersion") or _newest("vpc-cni", cluster, self),
            configuration_values=_configuration({**given, "env": {**_CNI_ENVIRONMENT, **given.get("env", {})}}),
            service_account_role_arn=options.get("serviceAccountRoleArn"),
            preserve=True,
            tags=tags,
            opts=pulumi.ResourceOptions(parent=self),
            **_OVERWRITE,
        )
        self.register_outputs({"addon": addon})


def _newest(addon: str, cluster: aws.eks.Cluster, parent: pulumi.Resource) -> pulumi.Output[str]:
    found = aws.eks.get_addon_version_output(
        addon_name=addon,
        kubernetes_version=cluster.version,
        most_recent=True,
        opts=pulumi.InvokeOutputOptions(parent=parent),
    )
    return found.version


def _configuration(values: Mapping[str, Any] | None) -> pulumi.Output[str] | None:
    return _json(values) if values else None


def _json(value: pulumi.Input[Any]) -> pulumi.Output[str]:
    return pulumi.Output.json_dumps(value)


def _sha1(text: str) -> str:
    """As pulumi-eks names attachments, and as IAM writes thumbprints."""
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
