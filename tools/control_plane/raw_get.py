"""GET of one path of an API server on loopback, with nothing but the standard library.

kwokctl finds out whether the API server answers by calling `kubectl get --raw PATH`, and downloads a kubectl where it
finds none. This module is the stand-in that it is given: quick to start, and of all of kubectl able to do only that.
"""

import http.client
import ssl
import sys
from pathlib import Path

TIMEOUT_SECONDS = 3.0


def raw_get(port: int, pki: Path, path: str) -> str:
    """The body of an answer with status 200; `pki` has ca.crt, admin.crt and admin.key.

    Raises:
        OSError: no connection, no valid answer, or another status.
    """
    context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
    context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS, context=context)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read().decode()
    except http.client.HTTPException as error:
        raise ConnectionError(f"{path}: no HTTP answer: {error}") from error
    finally:
        connection.close()
    if response.status != http.client.OK:
        raise ConnectionError(f"{path}: {response.status} {body}")
    return body


def main(arguments: list[str]) -> int:
    """PORT PKI, then what kubectl got: options and `get --raw PATH`."""
    try:
        print(raw_get(int(arguments[0]), Path(arguments[1]), arguments[-1]), end="")
    except OSError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
