"""Paths as users give them, made absolute; what is no path of this machine is refused in plain words."""

import os
from pathlib import Path
from typing import Any


class PathProblem(ValueError):
    """A path that no file can have; the message gives the reason, as the end of "cannot load …: "."""


def absolute(path: Any) -> Path:
    """The absolute path that a user means, `~` and `~name` in front replaced; links are not followed.

    Raises:
        PathProblem: the argument is no path, or one that the file system cannot have.
    """
    try:
        text = os.fspath(path)
        text = os.fsdecode(text) if isinstance(text, bytes) else text
    except TypeError:
        raise PathProblem(f"a path is a str or a pathlib.Path, not {type(path).__name__}") from None
    if not text:
        raise PathProblem("the path is empty")
    if "\0" in text:
        raise PathProblem("its name has a NUL character, which no file name can have")
    try:
        os.fsencode(text)
        # unlike Path.expanduser, this leaves `~name` as it is where there is no such user
        return Path(os.path.expanduser(text)).absolute()
    except UnicodeEncodeError:
        raise PathProblem("its name is no text that a file name can be (half of a surrogate pair)") from None
    except OSError as error:
        raise PathProblem(f"the working folder is gone ({error.strerror or error}); give an absolute path") from error


def followed(path: Path) -> Path:
    """An absolute path with its symbolic links followed, as far as it exists.

    Raises:
        PathProblem: the links lead back to themselves.
        OSError: the file system does not give its status, as for a name that is too long.
    """
    try:
        target = path.resolve()
        target.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return target
    except RuntimeError:  # Python 3.11 and 3.12 raise this for a loop
        raise PathProblem("its symbolic links lead back to themselves") from None
    if target.is_symlink():
        raise PathProblem("its symbolic links lead back to themselves")
    return target
