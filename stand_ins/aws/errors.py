"""The error that ends a call with one line."""


class StandInError(Exception):
    """What the stand-in refuses or cannot do, in one line."""
