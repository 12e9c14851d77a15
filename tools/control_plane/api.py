"""Requests to the API server: server-side apply and reads of raw JSON, through the Kubernetes client."""

import json
from pathlib import Path
from typing import cast
from urllib.parse import urlencode

from kubernetes import config
from kubernetes.client.api_client import ApiClient
from urllib3.exceptions import HTTPError

from tools.control_plane.nodes import Object

FIELD_MANAGER = "neuron-serving-control-plane"
_TIMEOUT_SECONDS = 30


class ApiError(Exception):
    """The API server refused a request; the message says which and why."""


class Api:
    """One API server. Paths are those of the Kubernetes API, such as /api/v1/nodes."""

    def __init__(self, kubeconfig: Path) -> None:
        self._client: ApiClient = config.new_client_from_config(str(kubeconfig))

    @property
    def address(self) -> str:
        return str(self._client.configuration.host)

    def get(self, path: str) -> Object:
        return cast(Object, json.loads(self.get_text(path)))

    def get_text(self, path: str) -> str:
        return self._request("GET", path)

    def create(self, path: str, body: Object) -> Object:
        """Make an object in the collection at `path`, or do what a subresource such as `eviction` stands for."""
        return cast(Object, json.loads(self._request("POST", path, json.dumps(body), "application/json")))

    def delete(self, path: str) -> None:
        self._request("DELETE", path)

    def apply(self, path: str, body: Object) -> Object:
        """Make the object at `path` what `body` says, and own those fields."""
        return self._apply(path, body, {})

    def check(self, path: str, body: Object) -> Object:
        """What `apply` would make, without making it; ApiError too for fields that the schema does not have."""
        return self._apply(path, body, {"dryRun": "All", "fieldValidation": "Strict"})

    def _apply(self, path: str, body: Object, options: dict[str, str]) -> Object:
        query = urlencode({"fieldManager": FIELD_MANAGER, "force": "true", **options})
        answer = self._request("PATCH", f"{path}?{query}", json.dumps(body), "application/apply-patch+yaml")
        return cast(Object, json.loads(answer))

    def _request(self, method: str, path: str, body: str | None = None, content_type: str | None = None) -> str:
        headers = {"Accept": "application/json"} | ({"Content-Type": content_type} if content_type else {})
        # The client's own connection pool, which has the kubeconfig's certificates; its call_api differs by release.
        request = self._client.rest_client.pool_manager.request
        try:
            response = request(method, self.address + path, headers=headers, body=body, timeout=_TIMEOUT_SECONDS)
        except HTTPError as error:
            raise ApiError(f"{method} {path}: {error}") from error
        text: str = response.data.decode()
        if response.status >= 400:
            raise ApiError(f"{method} {path}: {response.status} {_message(text)}")
        return text


def _message(content: str) -> str:
    try:
        return str(json.loads(content)["message"])
    except (ValueError, KeyError, TypeError):
        return content
