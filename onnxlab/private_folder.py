"""Folders that belong to the user alone, whose content is run or trusted."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def closed(path: Path) -> Path:
    """Make a folder where it is not there, and close it to other users.

    Raises:
        PermissionError: the folder is a link, or belongs to another user.
        OSError: it cannot be made or closed.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = path.lstat()
    owned = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()  # Windows: profiles have their own protection
    if not (owned and stat.S_ISDIR(status.st_mode)):
        raise PermissionError(1, "it is not a folder of this user", str(path))
    if status.st_mode & 0o077:
        path.chmod(0o700)
    return path
