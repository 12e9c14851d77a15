"""Serves the rules to the Pulumi engine. The constructor of PolicyPack does not return."""

import gc
import sys
from pathlib import Path

from pulumi_policy import PolicyPack

# The engine starts the pack with this directory alone on the path; `policy` and `neuron` lie beside each other.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from policy.decoding import decode_once
from policy.policies import policies
from policy.rules import RULES

decode_once()
# What is imported stays: the garbage collector need not look through it time and again.
gc.freeze()
PolicyPack(name="neuron-serving", policies=policies(RULES))
