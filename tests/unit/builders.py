"""Values of the domain with defaults, for tests that care about one of their fields."""

from neuron.model import Model


def model(
    *,
    checkpoint_gb: float = 2.2,
    tensor_parallel: int = 2,
    cold_start_seconds: int | None = None,
    sharded_checkpoint: bool = False,
) -> Model:
    """The measured TinyLlama, but for what the test says."""
    return Model(
        id="TinyLlama/TinyLlama-1.1B-Chat-v1.0",
        revision="fe8a4ea1ffedaf415f4da2f062534de366a451e6",
        checkpoint_gb=checkpoint_gb,
        max_model_len=1024,
        max_num_seqs=4,
        tensor_parallel=tensor_parallel,
        cold_start_seconds=cold_start_seconds,
        sharded_checkpoint=sharded_checkpoint,
    )
