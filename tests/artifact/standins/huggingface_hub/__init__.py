"""A stand-in for Hugging Face's client: one model, STANDIN_HUB says how the hub behaves, STANDIN_HUB_LOG what it sent.

Like the real one: notes of unfinished files in .cache/huggingface, finished files by rename, no second download of
those, and, with "partial", a half-filled directory given for a whole one.
"""

import errno
import hashlib
import os
from pathlib import Path
from types import SimpleNamespace

from huggingface_hub import utils

WEIGHTS = b"".join(hashlib.sha256(str(i).encode()).digest() for i in range(8000))
FILES = {
    "config.json": b'{"architectures": ["LlamaForCausalLM"]}',
    "model.safetensors": WEIGHTS,
    "nothing.txt": b"",
    "pytorch_model.bin": WEIGHTS,
    "tokenizer.json": b"{}" * 50000,
}


class HfApi:
    """The part of the client that asks about a repository."""

    def model_info(self, name: str, revision: str, files_metadata: bool) -> SimpleNamespace:
        assert files_metadata
        _answer(name, revision)
        siblings = [
            SimpleNamespace(
                rfilename=path,
                size=len(content),
                lfs={"sha256": hashlib.sha256(content).hexdigest()} if content is WEIGHTS else None,
            )
            for path, content in FILES.items()
        ]
        return SimpleNamespace(siblings=siblings)


def snapshot_download(_name: str, *, revision: str, local_dir: Path, ignore_patterns: list[str]) -> str:
    assert len(revision) == 40, "a branch moves"
    notes = local_dir / ".cache" / "huggingface"
    notes.mkdir(parents=True, exist_ok=True)
    behaviour = os.environ.get("STANDIN_HUB")
    wanted = [path for path in FILES if not any(Path(path).match(pattern) for pattern in ignore_patterns)]
    for path in wanted[:-1] if behaviour == "partial" else wanted:
        if (local_dir / path).exists():
            continue
        if behaviour == "disk full":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(local_dir / path))
        unfinished = notes / f"{path}.incomplete"
        _write(unfinished, FILES[path])
        unfinished.replace(local_dir / path)
        with Path(os.environ["STANDIN_HUB_LOG"]).open("a") as log:
            log.write(f"{path}\n")
    return str(local_dir)


def _write(path: Path, content: bytes) -> None:
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    while content:
        content = content[os.write(descriptor, content) :]
    os.close(descriptor)


def _answer(name: str, revision: str) -> None:
    if os.environ.get("HF_HUB_OFFLINE") == "1":
        raise utils.OfflineModeIsEnabled("offline mode is enabled")
    url = f"https://huggingface.co/api/models/{name}/revision/{revision}"
    token = os.environ.get("HF_TOKEN", "")
    match os.environ.get("STANDIN_HUB"):
        case "expired":
            raise utils.HfHubHTTPError(f"401 Client Error. {url}\n\nInvalid token {token}", 401)
        case "no revision":
            raise utils.RevisionNotFoundError(f"404 Client Error. {url}", 404)
        case "gated":
            raise utils.GatedRepoError(f"403 Client Error. {url}", 403)
        case "unreachable":
            raise ConnectionError(f"cannot connect with {token}\nsecond line")
