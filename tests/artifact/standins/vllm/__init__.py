"""A stand-in for vLLM on Neuron and for the compiler behind it: writes what each image line writes, and takes time.

STANDIN_LINE is the line (v0, nxdi, plugin), STANDIN_COMPILER how the compiler behaves (fails, fails later,
killed, silent, killed while sharding, shards less), STANDIN_COMPILE_SECONDS how long it takes for a module,
STANDIN_STARTED a file that gets what the engine came up with.
"""

import hashlib
import json
import os
import signal
import sys
import time
from pathlib import Path

LINE = os.environ.get("STANDIN_LINE", "nxdi")
VERSION = "2.20.9961.0+0acef03a"
COMPILE_SECONDS = float(os.environ.get("STANDIN_COMPILE_SECONDS", "0.01"))


class LLM:
    """Loads what it finds, whatever it is; compiles where it finds nothing."""

    def __init__(self, **arguments: object) -> None:
        assert os.environ.get("HF_HUB_OFFLINE") == "1", "the engine must not ask Hugging Face"
        assert "HF_TOKEN" not in os.environ or "STANDIN_SERVER" in os.environ, "the compiler needs no token"
        model = Path(str(arguments["model"]))
        assert (model / "config.json").exists(), f"{model} is no local model"
        served = {name: value for name, value in arguments.items() if name not in ("model", "served_model_name")}
        config = json.dumps(served, sort_keys=True)
        loaded = _plugin(config, model) if LINE == "plugin" else _nxdi(config, model)
        started = {"config": json.loads(config), **loaded}
        if "STANDIN_STARTED" in os.environ:
            Path(os.environ["STANDIN_STARTED"]).write_text(json.dumps(started))


def graph(config: str, name: str) -> bytes:
    """What the compiler makes of a configuration: large enough for several writes."""
    return b"".join(hashlib.sha256(f"{config}{name}{i}".encode()).digest() for i in range(5000))


def _nxdi(config: str, model: Path) -> dict[str, object]:
    artifacts = Path(os.environ["NEURON_COMPILED_ARTIFACTS"])
    try:
        return {"how": "loaded", **_load(artifacts, config, model)}
    except FileNotFoundError:
        sys.stderr.write("failed to load the model. Recompiling...\n")
    _write(artifacts / "neuron_config.json", config.encode())
    for name in ("context_encoding_model", "token_generation_model"):
        digest = hashlib.md5(f"{config}{name}".encode(), usedforsecurity=False).hexdigest()
        _compile_module(artifacts / f"neuronxcc-{VERSION}" / f"MODULE_{digest}+617f6939", config)
    if os.environ.get("STANDIN_COMPILER") == "silent":
        sys.exit(0)
    _write(artifacts / "model.pt", graph(config, "model.pt"))
    if _saves_shards(config):
        _save_shards(artifacts, config, model)
    return {"how": "compiled", **_load(artifacts, config, model)}


def _load(artifacts: Path, config: str, model: Path) -> dict[str, object]:
    """It does not look at the arguments: with artifacts there, they are ignored with a warning."""
    found = (artifacts / "neuron_config.json").read_text()
    content = (artifacts / "model.pt").read_bytes()
    files = _shards(artifacts, found) if _saves_shards(found) else [model / "model.safetensors"]
    weights = b"".join(path.read_bytes() for path in files)
    whole = content == graph(found, "model.pt")
    return {"own": found == config, "whole": whole, "weights": hashlib.sha256(weights).hexdigest()}


def _save_shards(artifacts: Path, config: str, model: Path) -> None:
    """After model.pt: who dies here leaves what looks compiled."""
    weights, paths = (model / "model.safetensors").read_bytes(), _shards(artifacts, config)
    size = -(-len(weights) // len(paths))
    for rank, path in enumerate(paths):
        shard = weights[rank * size :][:size]
        match os.environ.get("STANDIN_COMPILER"):
            case "killed while sharding" if path == paths[-1]:
                _write(path, shard[: size // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            case "shards less" if path == paths[-1]:
                sys.exit(0)
        _write(path, shard)


def _shards(artifacts: Path, config: str) -> list[Path]:
    ranks = range(json.loads(config)["tensor_parallel_size"])
    return [artifacts / "weights" / f"tp{rank}_sharded_checkpoint.safetensors" for rank in ranks]


def _saves_shards(config: str) -> bool:
    arguments = json.loads(config)
    settings = arguments if LINE == "v0" else arguments.get("additional_config", {})
    return bool(settings.get("override_neuron_config", {}).get("save_sharded_checkpoint"))


def _compile_module(module: Path, config: str) -> None:
    if (module / "model.done").exists():
        sys.stderr.write(f"using a cached neff at {module}\n")
        return
    if (module / "model.log").exists():
        sys.exit(f"cached failure: {(module / 'model.log').read_text()}")
    _write(module / "model.hlo_module.pb", graph(config, "hlo"))
    _compiler(module)
    _write(module / "model.neff", graph(config, module.name))
    _write(module / "model.done", b"")
    sys.stderr.write(f"compiled {module.name}\n")


def _compiler(module: Path) -> None:
    time.sleep(COMPILE_SECONDS)
    match os.environ.get("STANDIN_COMPILER"):
        case "fails later" if len(list(module.parent.iterdir())) == 1:
            return
        case "fails" | "fails later":
            _write(module / "model.log", b"[NCC_ITEN404] internal tensorizer error")
            sys.exit(70)
        case "killed":
            os.kill(os.getpid(), signal.SIGKILL)


def _plugin(config: str, model: Path) -> dict[str, object]:
    weights = hashlib.sha256((model / "model.safetensors").read_bytes()).hexdigest()
    cache = Path(os.environ["VLLM_CACHE_ROOT"]) / "neuron" / "compile_cache"
    digest = hashlib.md5(config.encode(), usedforsecurity=False).hexdigest()
    entry = cache / digest / "graph.neff"
    if entry.exists():
        whole = entry.read_bytes() == graph(config, digest)
        return {"how": "loaded", "own": True, "whole": whole, "weights": weights}
    if os.environ.get("VLLM_NEURON_DISABLE_WARMUP_COMPILE") == "1":
        sys.exit("graphs are missing and compiling is disabled")
    _write(cache / f"{digest}.lock", b"")
    _compiler(cache / digest)
    _write(entry, graph(config, digest))
    return {"how": "compiled", "own": True, "whole": True, "weights": weights}


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    while content:
        content = content[os.write(descriptor, content) :]
    os.close(descriptor)
