"""Which containers run an inference server."""

import re
from collections.abc import Iterator

from neuron.images import parse_reference
from policy.workloads import Container, PodSpec, Workload

# The last words of a repository such as vllm/vllm-openai, pytorch-inference-vllm-neuronx or nvidia/tritonserver.
_SERVER_IMAGE = re.compile(
    r"(?:^|[/_.-])(?:vllm|sglang|tgi|text-generation-inference|tritonserver|triton-inference-server)(?:$|[/_.-])"
)
# Companions of a server that carry its name.
_COMPANION_IMAGE = re.compile(r"[_-](?:router|exporter|proxy|gateway|benchmark)$")
_SERVER_COMMAND = re.compile(
    r"\bvllm\s+serve\b|\bvllm[./]entrypoints\b|\bsglang[./]launch_server\b|\bsglang\s+serve\b"
    r"|\btext-generation-launcher\b|\btritonserver\b"
)
# The other pods of a server that spans several: they join its Ray cluster or engine and answer no requests.
_FOLLOWER_COMMAND = re.compile(
    r"\bray\s+start\b[^;&|]*--address|multi-node-serving\.sh\s+worker\b|\bvllm\s+serve\b.*\s--headless\b"
    r"|\bsglang\b.*\s--node[-_]rank[=\s]+(?!0\b)",
    re.DOTALL,
)


def serving_containers(workload: Workload) -> Iterator[tuple[PodSpec, Container]]:
    """The containers of a workload that serve inference requests; none where the pods do not stay up."""
    if not workload.stays_up:
        return
    for pod in workload.pod_specs():
        for container in pod.containers():
            if not container.is_init and not container.is_ephemeral and _serves(container):
                yield pod, container


def _serves(container: Container) -> bool:
    fields = container.node.at("command"), container.node.at("args")
    words = [word for field in fields for word in field.elements()]
    # One word makes a follower of a server: while one is not known yet, nothing can be told.
    if any(node.is_unknown() for node in (*fields, *words)):
        return False
    command = " ".join(word.text() or "" for word in words)
    if _FOLLOWER_COMMAND.search(command):
        return False
    return bool(_SERVER_COMMAND.search(command)) or _is_server_image(container.node.at("image").text() or "")


def _is_server_image(image: str) -> bool:
    repository = parse_reference(image).repository.lower()
    return bool(_SERVER_IMAGE.search(repository)) and not _COMPANION_IMAGE.search(repository)
