"""Everything that bubblescope raises on purpose.

    BubblescopeError            70  never raised itself
    ├── UsageError               2  the command line or the configuration is wrong
    ├── InputError               3  an input is missing, unreadable or unusable
    └── UndecidedError           4  the inputs cannot answer the question

Each class carries the exit code that the command line returns for it.
"""

from __future__ import annotations

__all__ = ["BubblescopeError", "InputError", "UndecidedError", "UsageError"]


class BubblescopeError(Exception):
    """An error that a user can act on.

    `message` says what was expected and what was found, in which file and where;
    `hint` says what to do next. Neither ends with a full stop's worth of traceback.
    """

    exit_code = 70

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[object, ...]:
        """Errors come back from worker processes as they were raised there."""
        return _rebuilt, (type(self), self.message, self.hint)


def _rebuilt(kind: type[BubblescopeError], message: str, hint: str | None) -> BubblescopeError:
    return kind(message, hint=hint)


class UsageError(BubblescopeError):
    """The command line or the configuration asks for something that does not exist."""

    exit_code = 2


class InputError(BubblescopeError):
    """An input is missing, unreadable or holds nothing that can be used."""

    exit_code = 3


class UndecidedError(BubblescopeError):
    """The inputs are readable but cannot answer the question."""

    exit_code = 4
