"""Serves the stand-in; the engine gives its own address as the first argument."""

import sys

from tests.stand_ins.aws.provider import AwsProvider
from tests.stand_ins.serving import serve

serve(AwsProvider(sys.argv[1] if len(sys.argv) > 1 else ""))
