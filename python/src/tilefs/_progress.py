"""A bar for reads that take long: after two seconds, in terminals and notebooks."""

from __future__ import annotations

import importlib
import sys
import time
from typing import Any, Iterable, Iterator, Optional, TypeVar

from . import _wording

T = TypeVar("T")

#: Seconds before the bar is shown, and between its changes.
_BEFORE, _BETWEEN = 2.0, 0.2
_WIDTH = 30


def shown(batches: Iterable[T], most: int, is_wanted: bool = True) -> Iterator[T]:
    """Returns batches of rows as they come, of at most ``most`` rows together, and shows a bar if they take long."""
    bar = _Bar(most) if is_wanted and most else None
    try:
        for batch in batches:
            yield batch
            if bar is not None:
                bar.add(len(batch))  # type: ignore[arg-type]
    finally:
        if bar is not None:
            bar.end()


class _Bar:
    def __init__(self, most: int) -> None:
        self._most, self._rows = most, 0
        self._begin = time.monotonic()
        self._next = self._begin + _BEFORE
        self._handle: Any = None
        self._length = 0

    def add(self, rows: int) -> None:
        self._rows += rows
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _BETWEEN
            self._show(self._text(now - self._begin))

    def end(self) -> None:
        """Removes the bar."""
        if self._handle is not None:
            self._handle.update({"text/plain": ""}, raw=True)
        elif self._length:
            sys.stderr.write("\r" + " " * self._length + "\r")
            sys.stderr.flush()

    def _text(self, seconds: float) -> str:
        part = min(self._rows / self._most, 1.0)
        done = int(part * _WIDTH)
        left = f", {seconds / part - seconds:.0f} s left" if part else ""
        return f"tilefs [{'#' * done}{'.' * (_WIDTH - done)}] {part:4.0%} of at most {_wording.counted(self._most, 'row')}{left}"

    def _show(self, text: str) -> None:
        if self._handle is None and not self._length:
            self._handle = _in_notebook(text)
        elif self._handle is not None:
            self._handle.update({"text/plain": text}, raw=True)
        if self._handle is None and sys.stderr is not None and sys.stderr.isatty():
            sys.stderr.write("\r" + text.ljust(self._length))
            sys.stderr.flush()
            self._length = len(text)


def _in_notebook(text: str) -> Optional[Any]:
    """Shows a text below the cell of a notebook; ``None`` elsewhere."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    # Its modules have no types.
    return importlib.import_module("IPython.display").display({"text/plain": text}, raw=True, display_id=True)
