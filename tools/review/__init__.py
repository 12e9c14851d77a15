"""A preview as a reviewer reads it: the engine's events parsed, weighed and written as a comment of a pull request."""
