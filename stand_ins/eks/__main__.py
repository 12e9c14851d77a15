"""Serves the stand-in; the engine gives its own address as the first argument."""

import sys

from pulumi.provider.server import main

from stand_ins.eks.provider import EksProvider

main(EksProvider(), sys.argv[1:])
