"""neuron-monitor on every Neuron node: what the chips of a node do, as metrics.

As in AWS' manifest (aws-neuron-sdk, src/k8/k8s-neuron-monitor-daemonset.yml, read 2026-08-21), but for the list of
instance types, which lacks Trainium2 there.
"""

from collections.abc import Sequence

import pulumi_kubernetes.apps.v1 as apps

from components.monitoring.scraping import NEURON_MONITOR
from neuron.instances import CHIP_RESOURCE, INSTANCE_TYPE_LABEL

PORT = 8000


def daemon_set_spec(image: str, instance_types: Sequence[str]) -> apps.DaemonSetSpecArgsDict:
    """One pod on each node of these types. It reads the driver's devices, for which AWS has it privileged."""
    labels = {"app.kubernetes.io/name": NEURON_MONITOR, "app.kubernetes.io/part-of": "neuron-serving"}
    types = {"key": INSTANCE_TYPE_LABEL, "operator": "In", "values": sorted(set(instance_types))}
    return {
        "selector": {"match_labels": {"app.kubernetes.io/name": NEURON_MONITOR}},
        "template": {
            "metadata": {"labels": labels},
            "spec": {
                "automount_service_account_token": False,
                "affinity": {
                    "node_affinity": {
                        "required_during_scheduling_ignored_during_execution": {
                            "node_selector_terms": [{"match_expressions": [types]}]
                        }
                    }
                },
                "tolerations": [{"key": CHIP_RESOURCE, "operator": "Exists", "effect": "NoSchedule"}],
                "containers": [
                    {
                        "name": NEURON_MONITOR,
                        "image": image,
                        "command": ["/opt/bin/entrypoint.sh"],
                        "args": [
                            *("--port", str(PORT)),
                            *("--neuron-monitor-config", "/opt/aws/neuron/bin/neuron-monitor.conf"),
                        ],
                        "ports": [{"name": "metrics", "container_port": PORT}],
                        "env": [{"name": "GOMEMLIMIT", "value": "160MiB"}],
                        # AWS' manifest limits the CPU as well; a throttled exporter would report late.
                        "resources": {"requests": {"cpu": "256m", "memory": "256Mi"}, "limits": {"memory": "256Mi"}},
                        "security_context": {"privileged": True},
                    }
                ],
            },
        },
    }
