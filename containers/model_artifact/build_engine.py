"""Builds vLLM's engine once, which compiles and loads the model, from the very arguments of its server.

The child of compilation.py. vLLM parses the arguments itself, so that both build the same graph.
"""

import sys


def main(arguments: list[str]) -> None:
    """Return when the engine is built; whatever vLLM raises is its own and goes to the log."""
    from vllm import LLM
    from vllm.engine.arg_utils import EngineArgs

    try:
        from vllm.utils.argparse_utils import FlexibleArgumentParser
    except ImportError:
        # Lines up to 0.11 have it here.
        from vllm.utils import FlexibleArgumentParser

    engine = EngineArgs.from_cli_args(EngineArgs.add_cli_args(FlexibleArgumentParser()).parse_args(arguments))
    LLM(**vars(engine))


if __name__ == "__main__":
    main(sys.argv[1:])
