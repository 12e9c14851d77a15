"""The model to serve and the settings that shape its compiled graph."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

DataType = Literal["bfloat16", "float16", "float32"]

# The checkpoint whose start-up and throughput were measured (src): TinyLlama-1.1B.
MEASURED_CHECKPOINT_GB = 2.2

# Room for the compiler's intermediate files. Not measured alone; the source's 50 GiB for everything never filled.
COMPILE_WORK_GIB = 10

# Size on disk of checkpoints that were loaded on Neuron, in decimal gigabytes (src).
CHECKPOINT_GB: Mapping[str, float] = MappingProxyType(
    {
        "TinyLlama/TinyLlama-1.1B-Chat-v1.0": MEASURED_CHECKPOINT_GB,
        "Qwen/Qwen3-4B": 12.0,
        "Qwen/Qwen3-8B": 16.0,
    }
)

# Tokens that each of them was trained for (`max_position_embeddings` of its config.json); vLLM refuses to serve more.
CONTEXT_TOKENS: Mapping[str, int] = MappingProxyType(
    {
        "TinyLlama/TinyLlama-1.1B-Chat-v1.0": 2048,
        "Qwen/Qwen3-4B": 40960,
        "Qwen/Qwen3-8B": 40960,
    }
)


@dataclass(frozen=True)
class Model:
    """A Hugging Face model at one revision, and how it is served. Lengths are tokens.

    `cold_start_seconds` is the measured cold start of this model (compile included); None: it is estimated.
    With `sharded_checkpoint` the compiler shards the weights once, for every server; else each server does at load.
    """

    id: str
    revision: str
    checkpoint_gb: float
    max_model_len: int
    max_num_seqs: int
    tensor_parallel: int
    dtype: DataType = "bfloat16"
    cold_start_seconds: int | None = None
    sharded_checkpoint: bool = False


def storage_gib(model: Model) -> int:
    """Disk for a pod that downloads and compiles: the weights, twice while they are rewritten, and the artifacts.

    A sharded checkpoint is the weights once more. Where ranks share key-value heads, or float32 is served of bfloat16,
    it is larger than its source, up to twice; then the room for rewriting holds the rest.
    """
    copies = 3 if model.sharded_checkpoint else 2
    return math.ceil(model.checkpoint_gb * copies) + COMPILE_WORK_GIB
