"""Stand-ins for what costs money or needs an account: Pulumi's aws and eks plugins, the AWS API that boto3 asks, the
AWS CLI's get-token, Helm charts, and a vLLM server.

Only tests and `make preview STACK=... OFFLINE=1` use them. Every message that they print says that they are stand-ins.
"""

import os
from pathlib import Path

BIN = Path(__file__).parent / "bin"
# Under the names of the charts of components.charts: what `charts.folder` of a stack file takes.
CHARTS = Path(__file__).parent / "charts"
# A kubeconfig of the control plane that plays each EKS cluster.
CONTROL_PLANE_VARIABLE = "NEURON_SERVING_STAND_IN_KUBECONFIG"


def control_plane_kubeconfig() -> Path | None:
    """The kubeconfig that plays EKS; None where there is none, as in a preview without a control plane."""
    path = os.environ.get(CONTROL_PLANE_VARIABLE)
    return Path(path) if path else None
