"""The one error that the domain raises."""


class ImpossibleInputError(ValueError):
    """Input that no configuration of the system can satisfy; its text says what was found and what is allowed."""
