"""Requests to simulated servers, judged by what the control plane says; nothing is sent to simulated pods."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from tools.control_plane import ControlPlane
from tools.control_plane.api import Api, ApiError
from tools.control_plane.nodes import Object
from tools.control_plane.stages import SERVING_AT, timeline

# (src) the rate at which the rollouts were measured.
REQUESTS_PER_SECOND = 5
_LOOK_SECONDS = 0.02


@dataclass
class Traffic:
    """Steady requests to the servers of a namespace; times are the simulated servers', `time_factor` times the clock's.

    A request counts as served when, at its moment, a ready endpoint exists whose server has started. Its verdict is
    that of the latest look, of which there are several a request on a machine that is not busy.
    """

    api: Api
    namespace: str
    time_factor: float
    _looks: list[tuple[float, bool]] = field(default_factory=list)
    _serving_at: dict[str, datetime] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Look until stopped."""
        while not self._stop.wait(_LOOK_SECONDS):
            moment = time.monotonic()
            self._looks.append((moment, self._serves()))

    def stop(self) -> None:
        """End the requests."""
        self._stop.set()

    @property
    def sent(self) -> int:
        """Requests so far."""
        return len(self._verdicts())

    @property
    def failed(self) -> int:
        """Those of them that found no server."""
        return self._verdicts().count(False)

    @property
    def served_last(self) -> bool:
        """Whether the latest request was served."""
        return bool(self._looks) and self._looks[-1][1]

    @property
    def outage_seconds(self) -> float:
        """Seconds from the first to the last that failed, as the source measured; 0 if none did."""
        verdicts = self._verdicts()
        failed = [number for number, served in enumerate(verdicts) if not served]
        return (failed[-1] - failed[0] + 1) / REQUESTS_PER_SECOND if failed else 0

    def _verdicts(self) -> list[bool]:
        looks = list(self._looks)
        if not looks:
            return []
        period = 1 / REQUESTS_PER_SECOND / self.time_factor
        first, last = looks[0][0], looks[-1][0]
        verdicts, look = [], 0
        for number in range(int((last - first) / period) + 1):
            moment = first + number * period
            while look + 1 < len(looks) and looks[look + 1][0] <= moment:
                look += 1
            verdicts.append(looks[look][1])
        return verdicts

    def _serves(self) -> bool:
        slices = self.api.get(f"/apis/discovery.k8s.io/v1/namespaces/{self.namespace}/endpointslices")["items"]
        endpoints: list[Object] = [endpoint for each in slices for endpoint in each.get("endpoints") or []]
        ready = [endpoint["targetRef"]["name"] for endpoint in endpoints if endpoint["conditions"]["ready"]]
        return any(self._has_started(name) for name in ready)

    def _has_started(self, pod: str) -> bool:
        if pod not in self._serving_at:
            try:
                moments = timeline(self.api.get(f"/api/v1/namespaces/{self.namespace}/pods/{pod}"))
            except ApiError:
                # Deleted since the look at the endpoints.
                return False
            self._serving_at[pod] = moments[SERVING_AT]
        return self._serving_at[pod] <= datetime.now(UTC)


@contextmanager
def traffic(plane: ControlPlane, namespace: str) -> Iterator[Traffic]:
    """Requests to the servers of a namespace for as long as the context lasts."""
    flowing = Traffic(Api(plane.kubeconfig), namespace, plane.time_factor)
    thread = threading.Thread(target=flowing.run)
    thread.start()
    try:
        yield flowing
    finally:
        flowing.stop()
        thread.join()
