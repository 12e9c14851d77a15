"""A stand-in for the errors of Hugging Face's client, which derive from OSError as the real ones do."""

from types import SimpleNamespace


class OfflineModeIsEnabled(ConnectionError):  # noqa: N818 - its real name
    """The process must not ask the hub."""


class HfHubHTTPError(OSError):
    """An answer that is an error."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.response = SimpleNamespace(status_code=status)


class RepositoryNotFoundError(HfHubHTTPError):
    """No such model, or none for this token."""


class GatedRepoError(RepositoryNotFoundError):
    """A model whose terms were not accepted."""


class RevisionNotFoundError(HfHubHTTPError):
    """No such revision."""
