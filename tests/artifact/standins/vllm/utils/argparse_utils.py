"""A stand-in for vLLM's argument parser, where lines after 0.11 have it."""

from argparse import ArgumentParser

from vllm import LINE

if LINE != "v0":
    FlexibleArgumentParser = ArgumentParser
