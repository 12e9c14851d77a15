"""A stand-in for vLLM's engine arguments."""
