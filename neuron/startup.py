"""How long a serving pod takes from being scheduled to being ready, and from being told to stop to being gone."""

from dataclasses import dataclass

from neuron.model import MEASURED_CHECKPOINT_GB, Model

# (src) pod created 09:58:41, init container started 09:58:43; the rest is between containers.
SCHEDULING_SECONDS = 3
# (src) pulling the 7.9 GiB image took 2 min 48 s; only a node's first pod pays it.
IMAGE_PULL_SECONDS = 180
# vLLM's process is gone about this long after SIGTERM; in-flight requests are aborted, not finished.
EXIT_SECONDS = 2


@dataclass(frozen=True)
class StartUp:
    """Seconds of a start: `prepare_seconds` in the init container, `server_seconds` until the server answers."""

    prepare_seconds: int
    server_seconds: int

    @property
    def total_seconds(self) -> int:
        """Seconds from the pod's creation on a free node that has the image, to a server that answers."""
        return SCHEDULING_SECONDS + self.prepare_seconds + self.server_seconds


# (src) TinyLlama-1.1B on trn1.2xlarge: init 3 min 32 s + server 34 s = 4 min 9 s; with a cache hit 1 s + 37 s = 41 s.
COLD = StartUp(prepare_seconds=212, server_seconds=34)
WARM = StartUp(prepare_seconds=1, server_seconds=37)


def start_up(model: Model, *, cached: bool) -> StartUp:
    """The start of `model`: the measured one, stretched by the checkpoint's size.

    That both stages grow with the checkpoint is an assumption (one model was measured), on the safe side for probes;
    a stack that knows better states `model.coldStartSeconds`.

    The same for a sharded checkpoint. Its servers start faster, by how much was not measured on these types. Sharding
    takes its compiler 2.3 s a GB (AWS's weights sharding guide: 1857 s for Llama-3.1-405B, 812 GB, on NVMe), of the
    96 s a GB that a cold start is given here.
    """
    measured = WARM if cached else COLD
    stretch = max(1.0, model.checkpoint_gb / MEASURED_CHECKPOINT_GB)
    if not cached and model.cold_start_seconds is not None:
        stretch = (model.cold_start_seconds - SCHEDULING_SECONDS) / (COLD.total_seconds - SCHEDULING_SECONDS)
    return StartUp(round(measured.prepare_seconds * stretch), round(measured.server_seconds * stretch))
