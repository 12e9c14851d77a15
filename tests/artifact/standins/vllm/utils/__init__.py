"""A stand-in for vLLM's argument parser, where lines up to 0.11 have it."""

from argparse import ArgumentParser

from vllm import LINE

if LINE == "v0":
    FlexibleArgumentParser = ArgumentParser
