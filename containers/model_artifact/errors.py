"""How the programs end before they are done."""


class ArtifactError(Exception):
    """Expected, and ends the program with exit code 1; its text is one line: what was found, what to do about it."""


class Stopped(BaseException):
    """SIGTERM arrived. Not an Exception, so that nothing on the way takes it for a failure of its own."""
