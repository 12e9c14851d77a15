"""A stand-in for vLLM's server: builds the engine from its arguments, then ends."""

from argparse import ArgumentParser

from vllm import LLM
from vllm.engine.arg_utils import EngineArgs

if __name__ == "__main__":
    LLM(**vars(EngineArgs.from_cli_args(EngineArgs.add_cli_args(ArgumentParser()).parse_args())))
