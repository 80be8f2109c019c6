"""Keywords, from the options that the command line declares."""

from __future__ import annotations

import inspect
import keyword

from . import _core

# Options that name files or say how to print: the functions take and return objects instead.
FILES = {"output", "report", "title", "json", "quiet", "help", "at", "drive", "truth"}
READING = ("time", "id", "variables", "inputs", "header", "separator", "decimal", "missing", "sort", "duplicates",
           "sample_step")


def spelled(option: str) -> str:
    """The option as a keyword: ``max-steps`` is ``max_steps``, ``from`` is ``from_``."""
    name = option.replace("-", "_")
    return name + "_" if keyword.iskeyword(name) else name


def default(option: dict):
    """The option's default as a Python value; None where the command line has none."""
    text = option["initial"]
    if not option["value"]:
        return False
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text or None


def table(command: str, without: set[str]) -> dict[str, dict]:
    return {spelled(o["name"]): o for o in _core.options_of(command) if o["name"] not in without}


def check(function: str, known, given) -> None:
    """Refuses keywords that the function does not have, as Python does."""
    for name in given:
        if name not in known:
            near = _core.nearest(name, list(known))
            hint = f"; perhaps {near}" if near else ""
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{hint}")


def document(options: dict[str, dict]):
    """Gives a function that takes ``**options`` their signature and the list of them in its docstring. The
    parameters before them stay."""

    def decorate(function):
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        taken = {p.name for p in own}
        new = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default(o))
               for name, o in options.items() if name not in taken]
        function.__signature__ = signature.replace(parameters=own + new)
        lines = []
        for name, o in options.items():
            if name in taken:
                continue
            what = " | ".join(o["choices"]) or o["value"] or "bool"
            lines.append(f"{name} : {what}, default {default(o)!r}")
            lines.append("    " + " ".join(o["help"].split()))
        indent = "\n    "
        function.__doc__ = (function.__doc__ or "").replace("%OPTIONS%", indent.join(lines))
        return function

    return decorate
