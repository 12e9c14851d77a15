"""Publishes a compiled model into the cache and loads it from there, inside the vLLM Neuron image.

Two programs: `python3 -m containers.model_artifact.publish` (a Job) and `... .load` (an init container). They need
Python 3.10 (the oldest image's), neuron/differences.py, and what the image has: vLLM and huggingface_hub.

The cache is a directory that Mountpoint for Amazon S3 may serve, so the rules are its rules: a file is created, written
once from start to end, and closed; nothing is appended to, renamed, linked, overwritten or deleted. Below it:

    models/<model>@<revision>/weights/files/<sha256>-<n>       weights, shared by every configuration of the revision
    models/<model>@<revision>/weights/manifest-<n>.json        written when all of them are there
    models/<model>@<revision>/<key>/files/<sha256>-<n>         compiled graphs, and a sharded checkpoint's shards
    models/<model>@<revision>/<key>/manifest-<n>.json          written last: names every file, weights included

A file is named by its content, so publishers that work at once, or one after the other's death, share what is done.
What a dead publisher left half-written is in nobody's way: n is the first number that is free. Mountpoint has no lock
and its uploads no condition: when two publishers on two nodes write one name, the later wins, and has the same content;
for a manifest, the later wins too, and both name files that are there and stay there.

What no manifest names (half-written files, the graphs of a publisher that came second) stays: only the bucket's owner
deletes, a whole key at a time.
"""
