"""A bar for calls that take long: tqdm's, where there is tqdm and somebody to look at it."""

from __future__ import annotations

import sys
import time


class Bar:
    """Called with what is being done and how much of it. Appears after a second."""

    def __init__(self, wanted: bool):
        self._begin = time.monotonic()
        self._wanted = wanted
        self._bar = None

    def __call__(self, what: str, fraction: float) -> None:
        if not self._wanted or time.monotonic() - self._begin < 1:
            return
        if self._bar is None:
            try:
                from tqdm.auto import tqdm
            except ImportError:
                self._wanted = False
                return
            self._bar = tqdm(total=100, leave=False,
                             bar_format="{desc}: {percentage:3.0f}%|{bar}| {elapsed}<{remaining}")
        self._bar.set_description_str(what, refresh=False)
        self._bar.n = round(100 * fraction, 1)
        self._bar.refresh()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


def somebody_looks() -> bool:
    return sys.stderr is not None and (sys.stderr.isatty() or "ipykernel" in sys.modules)


class watched:
    """``with watched(progress) as bar``: the callable to hand to C++, or None.

    ``progress`` is True, False, a callable of what and fraction, or None: a bar where somebody
    looks.
    """

    def __init__(self, progress):
        if callable(progress):
            self._bar = progress
        elif progress or (progress is None and somebody_looks()):
            self._bar = Bar(True)
        else:
            self._bar = None

    def __enter__(self):
        return self._bar

    def __exit__(self, *_):
        if isinstance(self._bar, Bar):
            self._bar.close()
