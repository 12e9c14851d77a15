"""The stand-ins as tools, for `tools.environment` to link as plugins and put on PATH."""

from importlib import metadata

from stand_ins import BIN
from tools.toolchain import FoundTool, Toolchain

_PACKAGES = ("aws", "eks")


def with_stand_ins(toolchain: Toolchain) -> Toolchain:
    """The toolchain and the stand-ins, in the versions of the SDKs: the engine asks for these.

    For a state directory of its own: a plugin that is linked there stands in for every run from there.
    """
    plugins = (
        FoundTool(name, BIN / name, metadata.version(f"pulumi-{package}"), "checkout")
        for package in _PACKAGES
        for name in (f"pulumi-resource-{package}",)
    )
    return Toolchain((*toolchain.tools, *plugins))
