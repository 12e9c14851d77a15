"""The gRPC service ResourceProvider, as the engine calls it."""

import functools
import json
import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import grpc
import pulumi_aws
from google.protobuf import empty_pb2
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, plugin_pb2, provider_pb2, provider_pb2_grpc

from stand_ins.aws import functions, outputs, schema
from stand_ins.aws.differences import detailed_diff, replacing, top_level
from stand_ins.aws.errors import StandInError
from stand_ins.aws.facts import ALWAYS_IMMUTABLE, facts
from stand_ins.aws.outputs import Scope
from stand_ins.aws.schema import DEFAULTS_KEY, VERSION
from stand_ins.aws.values import UNKNOWN, Properties, contains_unknown, from_struct, reveal, to_struct

NAME = f"stand-in for pulumi-aws {VERSION}"
_NOTICE = f"{NAME}: no account is asked or changed; ids, ARNs and what AWS computes are made up"

Request = TypeVar("Request")
Response = TypeVar("Response")
Self = TypeVar("Self")
Method = Callable[[Self, Request, grpc.ServicerContext], Response]


def _in_one_line(method: Method[Self, Request, Response]) -> Method[Self, Request, Response]:
    """A refusal ends the call with its line, under the stand-in's name."""

    @functools.wraps(method)
    def call(self: Self, request: Request, context: grpc.ServicerContext) -> Response:
        try:
            return method(self, request, context)
        except StandInError as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"{NAME}: {error}")
            raise

    return call


class AwsProvider(provider_pb2_grpc.ResourceProviderServicer):
    """The aws plugin of one engine. `engine_address` is where the notice goes; without one it goes nowhere."""

    def __init__(self, engine_address: str = "") -> None:
        self._engine_address = engine_address
        self._scope = Scope("", {})

    def GetPluginInfo(self, _request: empty_pb2.Empty, _context: grpc.ServicerContext) -> plugin_pb2.PluginInfo:  # noqa: N802
        return plugin_pb2.PluginInfo(version=VERSION)

    def Cancel(self, _request: empty_pb2.Empty, _context: grpc.ServicerContext) -> empty_pb2.Empty:  # noqa: N802
        return empty_pb2.Empty()

    def CheckConfig(  # noqa: N802
        self, request: provider_pb2.CheckRequest, _context: grpc.ServicerContext
    ) -> provider_pb2.CheckResponse:
        known = schema.properties(pulumi_aws.ProviderArgs)
        unknown = [name for name in from_struct(request.news) if name not in known and name != "version"]
        failures = [_check_failure(name, f"pulumi-aws {VERSION} does not know it") for name in unknown]
        return provider_pb2.CheckResponse(inputs=request.news, failures=failures)

    def DiffConfig(  # noqa: N802
        self, request: provider_pb2.DiffRequest, _context: grpc.ServicerContext
    ) -> provider_pb2.DiffResponse:
        return _difference(from_struct(request.old_inputs), from_struct(request.news), ())

    @_in_one_line
    def Configure(  # noqa: N802
        self, request: provider_pb2.ConfigureRequest, _context: grpc.ServicerContext
    ) -> provider_pb2.ConfigureResponse:
        configuration = reveal(from_struct(request.args))
        assert isinstance(configuration, dict)
        self._scope = Scope(_region(configuration), _default_tags(configuration))
        self._tell(_NOTICE)
        return provider_pb2.ConfigureResponse(acceptSecrets=True, supportsPreview=True)

    @_in_one_line
    def Check(  # noqa: N802
        self, request: provider_pb2.CheckRequest, _context: grpc.ServicerContext
    ) -> provider_pb2.CheckResponse:
        token, news = _token(request.urn), from_struct(request.news)
        failures = [_check_failure(failure.path, failure.reason) for failure in schema.failures(token, news)]
        if failures:
            return provider_pb2.CheckResponse(inputs=request.news, failures=failures)
        inputs = outputs.with_defaults(token, request.urn, news, from_struct(request.olds))
        return provider_pb2.CheckResponse(inputs=to_struct(inputs))

    @_in_one_line
    def Diff(self, request: provider_pb2.DiffRequest, _context: grpc.ServicerContext) -> provider_pb2.DiffResponse:  # noqa: N802
        token, old, new = _token(request.urn), from_struct(request.old_inputs), from_struct(request.news)
        response = _difference(old, new, (*facts(token).immutable, *ALWAYS_IMMUTABLE))
        response.deleteBeforeReplace = bool(response.replaces) and _has_fixed_name(token, old, new)
        return response

    @_in_one_line
    def Create(  # noqa: N802
        self, request: provider_pb2.CreateRequest, _context: grpc.ServicerContext
    ) -> provider_pb2.CreateResponse:
        token, inputs = _token(request.urn), from_struct(request.properties)
        if request.preview:
            return provider_pb2.CreateResponse(properties=to_struct(outputs.preview(token, inputs, self._scope)))
        identifier, properties = outputs.create(token, request.urn, inputs, self._scope)
        return provider_pb2.CreateResponse(id=identifier, properties=to_struct(properties))

    @_in_one_line
    def Update(  # noqa: N802
        self, request: provider_pb2.UpdateRequest, _context: grpc.ServicerContext
    ) -> provider_pb2.UpdateResponse:
        token, old_inputs, new = _token(request.urn), from_struct(request.old_inputs), from_struct(request.news)
        properties = outputs.update(token, from_struct(request.olds), old_inputs, new, self._scope)
        if request.preview:
            properties |= {name: UNKNOWN for name in facts(token).revised if properties[name] != request.olds[name]}
        return provider_pb2.UpdateResponse(properties=to_struct(properties))

    def Delete(self, _request: provider_pb2.DeleteRequest, _context: grpc.ServicerContext) -> empty_pb2.Empty:  # noqa: N802
        return empty_pb2.Empty()

    @_in_one_line
    def Read(self, request: provider_pb2.ReadRequest, _context: grpc.ServicerContext) -> provider_pb2.ReadResponse:  # noqa: N802
        """A resource of the state is as it was. Others are not known: the stand-in keeps none."""
        if not request.properties.fields:
            raise StandInError(f"{request.id}: only resources that the stack made can be read")
        return provider_pb2.ReadResponse(id=request.id, properties=request.properties, inputs=request.inputs)

    @_in_one_line
    def Invoke(  # noqa: N802
        self, request: provider_pb2.InvokeRequest, _context: grpc.ServicerContext
    ) -> provider_pb2.InvokeResponse:
        arguments = reveal(from_struct(request.args))
        assert isinstance(arguments, dict)
        result = {} if contains_unknown(arguments) else functions.invoke(request.tok, arguments, self._scope)
        response = provider_pb2.InvokeResponse()
        # A keyword of Python, hence not an attribute to write.
        getattr(response, "return").CopyFrom(to_struct(result))
        return response

    def _tell(self, message: str) -> None:
        if not self._engine_address:
            return
        with grpc.insecure_channel(self._engine_address) as channel:
            engine_pb2_grpc.EngineStub(channel).Log(
                engine_pb2.LogRequest(severity=engine_pb2.INFO, message=message, streamId=0)
            )


def _token(urn: str) -> str:
    """The resource's own type: the last of the parent chain that a URN has."""
    return urn.split("::")[2].rpartition("$")[2]


def _check_failure(path: str, reason: str) -> provider_pb2.CheckFailure:
    return provider_pb2.CheckFailure(property=path, reason=f"{path} {reason} ({NAME})")


def _difference(old: Properties, new: Properties, immutable: tuple[str, ...]) -> provider_pb2.DiffResponse:
    old, new = ({key: item for key, item in side.items() if key != DEFAULTS_KEY} for side in (old, new))
    changes = detailed_diff(old, new, immutable)
    return provider_pb2.DiffResponse(
        changes=provider_pb2.DiffResponse.DIFF_SOME if changes else provider_pb2.DiffResponse.DIFF_NONE,
        diffs=list(dict.fromkeys(top_level(path) for path in changes)),
        replaces=replacing(changes),
        detailedDiff=changes,
        hasDetailedDiff=True,
    )


def _has_fixed_name(token: str, old: Properties, new: Properties) -> bool:
    """Whether the replacement would have the same name, which the program gave: then the old one has to go first."""
    name = outputs.name_property_of(token)
    if name is None or name not in new or new[name] != old.get(name):
        return False
    made = new.get(DEFAULTS_KEY, [])
    return isinstance(made, list) and name not in made


def _region(configuration: Mapping[str, Any]) -> str:
    region = configuration.get("region") or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if not region:
        raise StandInError("no region; set aws:region in the stack file or AWS_REGION")
    return str(region)


def _default_tags(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Objects of a provider's configuration come as JSON in a text."""
    tags: dict[str, Any] = json.loads(configuration.get("defaultTags") or "{}").get("tags", {})
    return tags
