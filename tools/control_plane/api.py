"""Requests to the API server: server-side apply and reads of raw JSON, through the Kubernetes client."""

import json
from pathlib import Path
from typing import cast

from kubernetes import config
from kubernetes.client.api_client import ApiClient

from tools.control_plane.nodes import Object

FIELD_MANAGER = "neuron-serving-control-plane"
_TIMEOUT_SECONDS = 30


class ApiError(Exception):
    """The API server refused a request; the message says which and why."""


class Api:
    """One API server. Paths are those of the Kubernetes API, such as /api/v1/nodes."""

    def __init__(self, kubeconfig: Path) -> None:
        self._client: ApiClient = config.new_client_from_config(str(kubeconfig))  # type: ignore[no-untyped-call]

    @property
    def address(self) -> str:
        return str(self._client.configuration.host)

    def get(self, path: str) -> Object:
        return self._request("GET", path)

    def delete(self, path: str) -> None:
        self._request("DELETE", path)

    def apply(self, path: str, body: Object | str) -> Object:
        """Make the object at `path` what `body` says, an object or a YAML text, and own those fields."""
        query = f"?fieldManager={FIELD_MANAGER}&force=true"
        text = body if isinstance(body, str) else json.dumps(body)
        return self._request("PATCH", path + query, text, "application/apply-patch+yaml")

    def _request(self, method: str, path: str, body: str | None = None, content_type: str | None = None) -> Object:
        headers = {"Accept": "application/json"} | ({"Content-Type": content_type} if content_type else {})
        response = self._client.call_api(
            method, self.address + path, headers, body=body, _request_timeout=_TIMEOUT_SECONDS
        )
        content: bytes = response.read()  # type: ignore[no-untyped-call]
        if response.status >= 400:
            raise ApiError(f"{method} {path}: {response.status} {_message(content)}")
        return cast(Object, json.loads(content))


def _message(content: bytes) -> str:
    try:
        return str(json.loads(content)["message"])
    except (ValueError, KeyError, TypeError):
        return content.decode(errors="replace")
