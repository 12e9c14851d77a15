"""Downloads a model's weights and compiles it, inside the vLLM Neuron image, before the server starts.

Takes the very arguments of the server, parsed by vLLM itself, so that both build the same graph. The artifacts land
where the environment says (NEURON_COMPILED_ARTIFACTS, VLLM_CACHE_ROOT), the weights in HF_HOME; the server finds both.
Needs nothing that the image lacks. Exit code 0: compiled and loadable.
"""

import sys
import time


def main(arguments: list[str]) -> None:
    """Build the engine once, which downloads, compiles and loads; then let it go."""
    from vllm import LLM
    from vllm.engine.arg_utils import EngineArgs

    try:
        from vllm.utils.argparse_utils import FlexibleArgumentParser
    except ImportError:
        # Lines up to 0.11 have it here.
        from vllm.utils import FlexibleArgumentParser

    engine = EngineArgs.from_cli_args(EngineArgs.add_cli_args(FlexibleArgumentParser()).parse_args(arguments))
    started = time.monotonic()
    print(f"model-prep: {engine.model} at {engine.revision}: downloading and compiling", flush=True)
    LLM(**vars(engine))
    print(f"model-prep: done in {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
