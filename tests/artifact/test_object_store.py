"""The same programs with a bucket of a real S3 protocol server (moto) behind the stand-in for Mountpoint."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import boto3
import pytest
from moto.s3.models import s3_backends
from moto.server import ThreadedMotoServer
from mypy_boto3_s3 import S3Client

from tests.artifact.sandbox import Sandbox, local_files

BUCKET = "vllm-models-cache-123456789012"


@pytest.fixture
def endpoint() -> Iterator[str]:
    """The address of an S3 server, with one bucket that keeps every version of its objects."""
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    # Its state is the process's, not the server's.
    s3_backends.reset()
    server.stop()


@pytest.fixture
def s3(endpoint: str) -> S3Client:
    client = boto3.Session("test", "test").client("s3", "us-east-1", endpoint_url=endpoint)
    client.create_bucket(Bucket=BUCKET)
    client.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
    return client


def on_node(pod: Sandbox, name: str, endpoint: str) -> Sandbox:
    """A pod on a node of its own: another mount of the same bucket."""
    mount = pod.cache.with_name(f"mount-{name}")
    mount.mkdir()
    environment = {**pod.environment, "STANDIN_S3": f"{endpoint}/{BUCKET}"}
    return replace(pod.other_pod(name), cache=mount, environment=environment)


def versions(s3: S3Client) -> Counter[str]:
    """How often each object was written; none may have been deleted."""
    listed = s3.list_object_versions(Bucket=BUCKET)
    assert "DeleteMarkers" not in listed
    return Counter(version["Key"] for version in listed.get("Versions", []))


def test_another_node_loads_what_one_published_and_no_object_was_written_twice(
    pod: Sandbox, endpoint: str, s3: S3Client
) -> None:
    publisher, server = on_node(pod, "publisher", endpoint), on_node(pod, "server", endpoint)
    published = publisher.publish()
    assert published.code == 0, published.log
    loaded = server.load(HF_HUB_OFFLINE="1")
    assert loaded.code == 0, loaded.log
    assert local_files(server) == local_files(publisher)
    assert server.start_server()["how"] == "loaded"
    written = versions(s3)
    assert f"{pod.artifact.prefix}manifest-1.json" in written
    assert set(written.values()) == {1}


def test_a_publisher_that_was_killed_is_succeeded_on_another_node(pod: Sandbox, endpoint: str, s3: S3Client) -> None:
    first, second, third = (on_node(pod, name, endpoint) for name in ("first", "second", "third"))
    elsewhere = pod.other_pod("elsewhere")
    # The last three make the manifest, before them come the compiled graphs.
    assert first.kill("publish", at=elsewhere.count_writes("publish") - 4).code == -9
    half = versions(s3)
    assert any("/weights/manifest-1.json" in key for key in half)
    assert not any(f"/{pod.artifact.key}/manifest" in key for key in half)
    assert "is not published" in third.load().failure
    assert second.publish().code == 0
    assert second.downloads() == [], "the weights were complete, and came from the cache"
    assert third.load().code == 0
    assert local_files(third) == local_files(second)
    assert {key: versions(s3)[key] for key in half} == half


def test_of_two_publishers_on_two_nodes_both_end_and_a_third_loads(pod: Sandbox, endpoint: str, s3: S3Client) -> None:
    nodes = [on_node(pod, name, endpoint) for name in ("first", "second")]
    ended = [node.end(process) for node, process in [(node, node.begin("publish")) for node in nodes]]
    assert [one.code for one in ended] == [0, 0], [one.log for one in ended]
    assert any(one.message.startswith("published ") for one in ended)
    assert [key for key in versions(s3) if key.startswith(f"{pod.artifact.prefix}manifest-")]
    third = on_node(pod, "third", endpoint)
    assert third.load().code == 0
    assert third.start_server()["whole"]
