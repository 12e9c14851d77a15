"""Plans of edges for tests, from stack files as users write them."""

from typing import Any

from components.configuration import parse_settings
from components.edges.plan import EdgePlan
from components.plans import edge_plan, serving_plans
from tests.unit.configuration import MODEL, encoded

KEY = "a-key-that-only-tests-know-of"
OTHER_KEY = "another-key-that-only-tests-know"
KEYS = {"team-a": KEY, "team-b": OTHER_KEY}


def plan(edge: dict[str, Any], max_num_seqs: int = 4, longest_request_seconds: int = 90, servers: int = 1) -> EdgePlan:
    """The plan of an edge before servers of one replica each, in a stack with `apiKeys`."""
    serving = {
        "imageLine": "nxdi-0.13",
        "nodeGroup": "inferentia",
        "replicas": 1,
        "longestRequestSeconds": longest_request_seconds,
        "model": {**MODEL, "maxNumSeqs": max_num_seqs},
    }
    values = {
        "cluster": {"mode": "kubeconfig", "kubeconfig": "kubeconfig"},
        "nodeGroups": [{"name": "inferentia", "instanceType": "inf2.xlarge", "nodes": servers}],
        "serving": [{"name": f"llm-{index}", **serving} for index in range(servers)],
        "edge": edge,
        **({"apiKeys": KEYS} if edge["kind"] != "nlb" else {}),
    }
    settings = parse_settings(encoded(values))
    made = edge_plan(settings, serving_plans(settings))
    assert made is not None
    return made
