"""Runs the program under Pulumi's mocks and gives what it registered, as the engine would see it."""

import asyncio
import json
import runpy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pulumi
import pulumi.runtime
import pytest
import yaml
from pulumi.runtime import mocks

from components.charts import CHARTS
from stand_ins import CHARTS as STAND_IN_CHARTS

ROOT = Path(__file__).parent.parent.parent
PROJECT = "neuron-serving"
# The key under which Pulumi marks a value on its wire.
SECRET_MARK = "4dabf18193072939515e22adb298388d"  # noqa: S105 - the name of a key


@dataclass(frozen=True)
class Registered:
    """One resource as the program registered it; `inputs` in the provider's camelCase."""

    type: str
    name: str
    inputs: dict[str, Any]


class Recorder(mocks.Mocks):
    """Answers every registration with its inputs, and with a name (Kubernetes) or an ARN (AWS).

    `outputs` adds what a type has beside its inputs. pulumi-eks registers its own resources, which mocks do not show.
    """

    def __init__(self) -> None:
        """Start with nothing registered."""
        self.resources: list[Registered] = []
        self.outputs: dict[str, dict[str, Any]] = {}

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[Any, Any]]:
        """Record and echo."""
        self.resources.append(Registered(args.typ, args.name, args.inputs))
        outputs = dict(args.inputs)
        if args.typ.startswith("kubernetes:"):
            outputs["metadata"] = {"name": f"{args.name}-0a1b2c3d", **outputs.get("metadata", {})}
        if args.typ.startswith("aws:"):
            outputs |= {"arn": f"arn:{args.typ}:{args.name}", "latestVersion": 1}
        return f"{args.name}-id", outputs | self.outputs.get(args.typ, {})

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[Any, Any], list[tuple[str, str]] | None]:
        """The program looks nothing up."""
        raise AssertionError(f"unexpected invoke {args.token}")

    def of_type(self, suffix: str) -> list[Registered]:
        """Resources whose type token ends with `suffix`, such as `:Deployment`, by name.

        Registrations overlap: the order in which they arrive says nothing.
        """
        found = [one for one in self.resources if one.type.endswith(suffix)]
        return sorted(found, key=lambda one: one.name)

    def refused_chart_values(self) -> list[str]:
        """What the charts that the program installs do not know of the values that it sets, by their recorded schemas.

        Helm passes over a key that no template reads: a misspelt or renamed one would silently do nothing.
        """
        return [
            f"{chart.name}: {error.json_path}: {error.message}"
            for chart in [*self.of_type("helm.sh/v4:Chart"), *self.of_type("helm.sh/v3:Release")]
            for error in values_schema(chart.name).iter_errors(plain(chart.inputs.get("values", {})))
        ]


def values_schema(key: str) -> jsonschema.protocols.Validator:
    """The recorded schema of the values of a chart of components.charts.CHARTS."""
    schema = json.loads((STAND_IN_CHARTS / CHARTS[key].name / "values.schema.json").read_text())
    return jsonschema.Draft7Validator(schema)


def plain(value: Any) -> Any:
    """The value without the mark of a secret, which on Pulumi's wire is a mapping around what is secret."""
    if isinstance(value, dict):
        return plain(value["value"]) if SECRET_MARK in value else {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list) else value


def stack_values(stack: str) -> dict[str, Any]:
    """The values of a stack file, free to change; those of other packages keep their prefix, as in aws:region."""
    document = yaml.safe_load((ROOT / "stacks" / f"Pulumi.{stack}.yaml").read_text())
    return {key.removeprefix(f"{PROJECT}:"): value for key, value in document["config"].items()}


@contextmanager
def own_event_loop() -> Iterator[None]:
    """A current event loop for Pulumi's mocks, which make none: an asyncio.run before them in the process left none."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        yield
    finally:
        asyncio.set_event_loop(None)
        loop.close()


@pytest.fixture
def local_stack(tmp_path: Path) -> dict[str, Any]:
    """The values of the stack file `local`, with a kubeconfig that exists."""
    values = stack_values("local")
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text("{}")
    values["cluster"]["kubeconfig"] = str(kubeconfig)
    return values


@pytest.fixture(scope="session")
def run_program() -> Callable[..., Recorder]:
    """Run `__main__.py` with these configuration values (and a secret token or other secrets, if any are given)."""

    def run(
        values: Mapping[str, Any],
        token: str | None = None,
        outputs: dict[str, dict[str, Any]] | None = None,
        secrets: Mapping[str, str] | None = None,
    ) -> Recorder:
        recorder = Recorder()
        recorder.outputs = outputs or {}
        configuration = {f"{PROJECT}:{key}": json.dumps(value) for key, value in values.items() if ":" not in key}
        configuration |= {key: value for key, value in values.items() if ":" in key}
        secret = {f"{PROJECT}:{key}": value for key, value in (secrets or {}).items()}
        if token is not None:
            secret[f"{PROJECT}:hfToken"] = token
        pulumi.runtime.set_all_config({**configuration, **secret}, list(secret))
        with own_event_loop():
            mocks.set_mocks(recorder, project=PROJECT, stack="local")
            under_mocks(run_main)()
        assert not recorder.refused_chart_values()
        return recorder

    # The SDK annotates nothing of it.
    under_mocks: Any = pulumi.runtime.test

    def run_main() -> None:
        runpy.run_path(str(ROOT / "__main__.py"))

    return run
