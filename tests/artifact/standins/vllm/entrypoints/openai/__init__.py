"""A stand-in for vLLM's server."""
