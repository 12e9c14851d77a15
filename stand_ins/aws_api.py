"""A stand-in for AWS on a loopback port: moto's server, and in front of it answers that moto cannot give.

moto has what EC2 stated of instance types and offerings, and keeps instances, subnets and parameters. It knows no
vCPU quotas, no capacity reservations and no add-on versions, and it never throttles or denies: for these a test gives
the document that AWS would send.
"""

import io
import json
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Response

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

LOOPBACK = "127.0.0.1"
XML = "text/xml;charset=UTF-8"
JSON = "application/x-amz-json-1.1"
# The only REST service that is asked; its actions are told by their paths.
_ACTION_OF_PATH = {"/addons/supported-versions": "DescribeAddonVersions"}


@dataclass(frozen=True)
class Reply:
    """A document that AWS sends; without one, moto answers."""

    body: str
    content_type: str = XML
    status: int = 200


MOTO = None


class AwsStandIn:
    """The server, running. `url` is what AWS_ENDPOINT_URL must be; `calls` counts requests by action.

    `instances_per_page` makes DescribeInstances answer in pages of that size, as EC2 does of its own accord.
    """

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.instances_per_page: int | None = None
        self._replies: dict[str, list[Reply | None]] = {}
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._server = make_server(LOOPBACK, 0, self, threaded=True, request_handler=_QuietHandler)
        self.url = f"http://{LOOPBACK}:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        """Stop and free the port."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def reset(self) -> None:
        """Forget replies and counts."""
        self.calls.clear()
        self._replies.clear()
        self.instances_per_page = None

    def reply(self, action: str, *replies: Reply | None) -> None:
        """Answer requests for an action with these in turn, and with the last one ever after."""
        self._replies[action] = list(replies)

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        """Answer one request."""
        body: bytes = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        action = _action(environ, body)
        self.calls[action] += 1
        reply = self._next_reply(action)
        if reply is not None:
            return Response(reply.body, reply.status, content_type=reply.content_type)(environ, start_response)
        if action == "DescribeInstances" and self.instances_per_page is not None:
            body += f"&MaxResults={self.instances_per_page}".encode()
        environ |= {"wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body))}
        answer: Iterable[bytes] = self._moto(environ, start_response)
        return answer

    def _next_reply(self, action: str) -> Reply | None:
        replies = self._replies.get(action, [MOTO])
        return replies.pop(0) if len(replies) > 1 else replies[0]


def json_reply(document: Mapping[str, object]) -> Reply:
    """An answer of Systems Manager, Service Quotas or EKS."""
    return Reply(json.dumps(document), JSON)


def json_error(code: str, message: str, status: int = 400) -> Reply:
    """An error of Systems Manager, Service Quotas or EKS."""
    return Reply(json.dumps({"__type": code, "message": message}), JSON, status)


def ec2_error(code: str, message: str, status: int) -> Reply:
    """An error of EC2."""
    error = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
    return Reply(f"<Response><Errors>{error}</Errors><RequestID>0</RequestID></Response>", XML, status)


def query_error(code: str, message: str, status: int) -> Reply:
    """An error of the Security Token Service."""
    error = f"<Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error>"
    return Reply(f"<ErrorResponse>{error}<RequestId>0</RequestId></ErrorResponse>", XML, status)


def ec2_page(action: str, name: str, items: Iterable[Mapping[str, object]], next_token: str = "") -> Reply:
    """A page of an EC2 list of flat items; `name` is the list's element."""
    entries = "".join(f"<item>{_elements(item)}</item>" for item in items)
    token = f"<nextToken>{next_token}</nextToken>" if next_token else ""
    return Reply(f"<{action}Response><requestId>0</requestId><{name}>{entries}</{name}>{token}</{action}Response>")


def _elements(item: Mapping[str, object]) -> str:
    return "".join(f"<{key}>{value}</{key}>" for key, value in item.items())


def _action(environ: "WSGIEnvironment", body: bytes) -> str:
    """The action: in a header, in the form, or by the path."""
    target = str(environ.get("HTTP_X_AMZ_TARGET", ""))
    if target:
        return target.rpartition(".")[2]
    path = str(environ["PATH_INFO"])
    return _ACTION_OF_PATH.get(path) or parse_qs(body.decode()).get("Action", [path])[0]


class _QuietHandler(WSGIRequestHandler):
    """Logs no request: pytest's output is for failures."""

    def log(self, type: str, message: str, *args: object) -> None:  # noqa: A002 - the name that werkzeug calls it by
        pass
