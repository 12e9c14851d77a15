"""Serves the stand-in; the engine gives its own address as the first argument."""

import sys

from stand_ins.aws.provider import AwsProvider
from stand_ins.serving import serve

serve(AwsProvider(sys.argv[1] if len(sys.argv) > 1 else ""))
