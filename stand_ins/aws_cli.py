"""A stand-in for `aws eks get-token`: the credential of the control plane that plays EKS, in the real one's form."""

import json
import sys

from stand_ins import CONTROL_PLANE_VARIABLE, control_plane_kubeconfig
from stand_ins.kubeconfig import read_access


def main() -> int:
    kubeconfig = control_plane_kubeconfig()
    if {"eks", "get-token"} - set(sys.argv):
        return _refuse("only `eks get-token` is known")
    if kubeconfig is None:
        return _refuse(f"{CONTROL_PLANE_VARIABLE} is not set; it names the kubeconfig that plays EKS")
    access = read_access(kubeconfig)
    # A client certificate where the real CLI gives a token: both are ExecCredential.
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "kind": "ExecCredential",
        "status": {"clientCertificateData": access.client_certificate, "clientKeyData": access.client_key},
    }
    json.dump(credential, sys.stdout)
    return 0


def _refuse(reason: str) -> int:
    sys.stderr.write(f"stand-in aws CLI: {reason}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
