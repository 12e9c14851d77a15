"""The stand-in for the AWS CLI: a credential where the real one gives a token."""

import json
import os
import subprocess
import sys
from pathlib import Path

import yaml

from stand_ins import BIN, CONTROL_PLANE_VARIABLE

GET_TOKEN = ("--region", "us-west-2", "eks", "get-token", "--cluster-name", "serving", "--output", "json")


def run(*arguments: str, kubeconfig: Path | None) -> subprocess.CompletedProcess[str]:
    variables = {CONTROL_PLANE_VARIABLE: str(kubeconfig or ""), "PULUMI_PYTHON_CMD": sys.executable}
    return subprocess.run(
        [BIN / "aws", *arguments], env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )


def test_the_credential_is_the_control_plane_s(tmp_path: Path) -> None:
    for name in ("ca", "certificate", "key"):
        (tmp_path / name).write_text(f"PEM of {name}")
    cluster = {"server": "https://127.0.0.1:1", "certificate-authority": str(tmp_path / "ca")}
    user = {"client-certificate": str(tmp_path / "certificate"), "client-key": str(tmp_path / "key")}
    kubeconfig = tmp_path / "kubeconfig"
    document = {
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
    }
    kubeconfig.write_text(yaml.safe_dump(document))
    credential = json.loads(run(*GET_TOKEN, kubeconfig=kubeconfig).stdout)
    assert credential["kind"] == "ExecCredential"
    assert credential["status"] == {
        "clientCertificateData": "PEM of certificate",
        "clientKeyData": "PEM of key",
    }


def test_it_says_what_it_does_not_do_and_what_it_misses() -> None:
    assert "stand-in aws CLI: only `eks get-token`" in run("s3", "ls", kubeconfig=None).stderr
    refused = run(*GET_TOKEN, kubeconfig=None)
    assert refused.returncode == 1
    assert CONTROL_PLANE_VARIABLE in refused.stderr
