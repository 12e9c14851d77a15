"""What a program tells: stages in the log while it works, a summary in the container's termination message."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

# Kubernetes cuts a termination message at 4096 bytes.
_MESSAGE_BYTES = 4096

_TOKEN_VARIABLES = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")


class Stage:
    """One stage, for the code inside it: how many bytes are done."""

    def __init__(self, measure: Callable[[], int] | None) -> None:
        """`measure` counts the bytes where nobody else does."""
        self._started = time.monotonic()
        self._bytes = 0
        self._lock = threading.Lock()
        self._measure = measure

    def add(self, count: int) -> None:
        """`count` more bytes are done; from any thread."""
        with self._lock:
            self._bytes += count

    def __str__(self) -> str:
        """Bytes, where there are any, and seconds."""
        done = self._measure() if self._measure else self._bytes
        seconds = time.monotonic() - self._started
        return f"{done} bytes in {seconds:.1f} s" if done else f"{seconds:.1f} s"


class Report:
    """The log and the termination message. Neither ever shows the value of a token variable."""

    def __init__(self, program: str, termination_log: Path, interval_seconds: float) -> None:
        """`interval_seconds` is the time between two lines about one stage."""
        self._program = program
        self._termination_log = termination_log
        self._interval_seconds = interval_seconds
        self._secrets = [os.environ[name] for name in _TOKEN_VARIABLES if os.environ.get(name)]
        self._stages: list[str] = []

    @contextmanager
    def stage(self, name: str, measure: Callable[[], int] | None = None) -> Iterator[Stage]:
        """A stage of the work: told when it starts, while it runs and when it ends."""
        stage = Stage(measure)
        ended = threading.Event()
        self.say(f"{name}: started")
        self._conclude(f"unfinished: {name} was running")
        ticker = threading.Thread(target=self._tick, args=(name, stage, ended), daemon=True)
        ticker.start()
        try:
            yield stage
        finally:
            ended.set()
            ticker.join()
        self._stages.append(f"{name} {stage}")
        self.say(f"{name}: done, {stage}")

    def say(self, text: str) -> None:
        """One line of the log."""
        print(f"{self._program}: {self._without_secrets(text)}", flush=True)

    def end(self, text: str) -> None:
        """The last line of the log, which is the termination message too, there with the stages."""
        self.say(text)
        self._conclude(text)

    def _tick(self, name: str, stage: Stage, ended: threading.Event) -> None:
        while not ended.wait(self._interval_seconds):
            self.say(f"{name}: {stage} so far")

    def _conclude(self, text: str) -> None:
        message = self._without_secrets("\n".join([text, *self._stages])).encode()[:_MESSAGE_BYTES]
        try:
            self._termination_log.write_bytes(message)
        except OSError:
            # Outside of Kubernetes there is none; the log says it all.
            return

    def _without_secrets(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text
