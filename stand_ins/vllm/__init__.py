"""A stand-in for the vLLM server: its HTTP interface, queue, slots and metrics, with measured timing and no model."""
