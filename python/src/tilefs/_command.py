"""The program ``tilefs``, which the wheel installs as a command."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig

from ._errors import NotFoundError


def path() -> str:
    """Returns the path of the program: ``$TILEFS_COMMAND`` if it is set, else the program of this installation, else
    the one in ``$PATH``.

    :raises NotFoundError: if there is none
    """
    given = os.environ.get("TILEFS_COMMAND")
    if given:
        return given
    user_scheme = sysconfig.get_preferred_scheme("user") if sys.version_info >= (3, 10) else "posix_user"
    folders = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", user_scheme)]
    for folder in folders:
        command = os.path.join(folder, "tilefs")
        if os.access(command, os.X_OK):
            return command
    found = shutil.which("tilefs")
    if found is None:
        raise NotFoundError(f"the program tilefs is neither in {' nor in '.join(folders)} nor in PATH; in a checkout, cargo install --path . builds it")
    return found
