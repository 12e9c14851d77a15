"""A stand-in for vLLM on Neuron and for the compiler behind it: writes what each image line writes, and takes time.

STANDIN_LINE is the line (v0, nxdi, plugin), STANDIN_COMPILER how the compiler behaves (fails, fails later,
killed, silent), STANDIN_COMPILE_SECONDS how long it takes for a module,
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
        weights = hashlib.sha256((model / "model.safetensors").read_bytes()).hexdigest()
        served = {name: value for name, value in arguments.items() if name not in ("model", "served_model_name")}
        config = json.dumps(served, sort_keys=True)
        loaded = _plugin(config) if LINE == "plugin" else _nxdi(config)
        started = {"config": json.loads(config), "weights": weights, **loaded}
        if "STANDIN_STARTED" in os.environ:
            Path(os.environ["STANDIN_STARTED"]).write_text(json.dumps(started))


def graph(config: str, name: str) -> bytes:
    """What the compiler makes of a configuration: large enough for several writes."""
    return b"".join(hashlib.sha256(f"{config}{name}{i}".encode()).digest() for i in range(5000))


def _nxdi(config: str) -> dict[str, object]:
    artifacts = Path(os.environ["NEURON_COMPILED_ARTIFACTS"])
    try:
        found = (artifacts / "neuron_config.json").read_text()
        content = (artifacts / "model.pt").read_bytes()
        # It does not look at the arguments: with artifacts there, they are ignored with a warning.
        return {"how": "loaded", "own": found == config, "whole": content == graph(found, "model.pt")}
    except FileNotFoundError:
        sys.stderr.write("failed to load the model. Recompiling...\n")
    _write(artifacts / "neuron_config.json", config.encode())
    for name in ("context_encoding_model", "token_generation_model"):
        digest = hashlib.md5(f"{config}{name}".encode(), usedforsecurity=False).hexdigest()
        _compile_module(artifacts / f"neuronxcc-{VERSION}" / f"MODULE_{digest}+617f6939", config)
    if os.environ.get("STANDIN_COMPILER") != "silent":
        _write(artifacts / "model.pt", graph(config, "model.pt"))
    return {"how": "compiled", "own": True, "whole": True}


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


def _plugin(config: str) -> dict[str, object]:
    cache = Path(os.environ["VLLM_CACHE_ROOT"]) / "neuron" / "compile_cache"
    digest = hashlib.md5(config.encode(), usedforsecurity=False).hexdigest()
    entry = cache / digest / "graph.neff"
    if entry.exists():
        return {"how": "loaded", "own": True, "whole": entry.read_bytes() == graph(config, digest)}
    if os.environ.get("VLLM_NEURON_DISABLE_WARMUP_COMPILE") == "1":
        sys.exit("graphs are missing and compiling is disabled")
    _write(cache / f"{digest}.lock", b"")
    _compiler(cache / digest)
    _write(entry, graph(config, digest))
    return {"how": "compiled", "own": True, "whole": True}


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    while content:
        content = content[os.write(descriptor, content) :]
    os.close(descriptor)
