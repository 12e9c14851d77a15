"""A stand-in for vLLM's engine arguments: the flags that each line has, no other."""

import argparse
import json

from vllm import LINE

FLAGS = ("model", "revision", "tokenizer-revision", "served-model-name", "dtype")
NUMBERS = ("max-model-len", "max-num-seqs", "tensor-parallel-size")


class EngineArgs:
    """The values of the flags, as attributes."""

    def __init__(self, values: dict[str, object]) -> None:
        vars(self).update(values)

    @staticmethod
    def add_cli_args(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
        for name in FLAGS:
            parser.add_argument(f"--{name}")
        for name in NUMBERS:
            parser.add_argument(f"--{name}", type=int)
        parser.add_argument("--override-neuron-config" if LINE == "v0" else "--additional-config", type=json.loads)
        if LINE == "v0":
            parser.add_argument("--device", choices=["neuron"])
        return parser

    @classmethod
    def from_cli_args(cls, options: argparse.Namespace) -> "EngineArgs":
        return cls({name: value for name, value in vars(options).items() if value is not None})
