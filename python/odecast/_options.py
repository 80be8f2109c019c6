"""Keywords, from the tables of the library and of the command line."""

from __future__ import annotations

import inspect
import keyword
import re
from functools import cached_property

from . import _core

# Options that name files or say how to print: the functions take and return objects instead.
FILES = {"output", "report", "title", "json", "quiet", "help", "at", "drive", "truth",
         "history"}
READING = ("time", "time_format", "time_unit", "id", "variables", "inputs", "skip", "header",
           "separator", "decimal", "missing",
           "sort", "duplicates", "sample_step")
TYPES = {"flag": "bool", "whole": "int", "number": "float", "numbers": "Numbers", "text": "str",
         "values": "dict[str, float] | str"}


class Part(cached_property):
    """An attribute that the compiled object has, of that type: read once."""

    def __init__(self, kind: str, doc: str):
        def read(owner):
            return getattr(owner._core, self.attrname)

        read.__annotations__["return"] = kind
        super().__init__(read)
        self.__doc__ = doc


def spelled(option: str) -> str:
    """The option as a keyword: ``max-steps`` is ``max_steps``, ``from`` is ``from_``."""
    name = option.replace("-", "_")
    return name + "_" if keyword.iskeyword(name) else name


def default(option: dict):
    """The option's default as a Python value; None where there is none, or the method decides."""
    kind, text = option["type"], option["initial"]
    if kind == "flag":
        return False
    try:
        if kind == "numbers":
            return [int(x) if x.isdigit() else float(x) for x in text.split(",")]
        return {"whole": int, "number": float}[kind](text)
    except (KeyError, ValueError):
        return text or None


def type_of(option: dict) -> str:
    """The type of its values, as stubs have it."""
    kind, words = option["type"], option["choices"]
    words = words or [w for w in ("auto", "all") if w == option["initial"]]
    if kind == "text" and "…" in option["value"]:
        text = "Words"
    elif kind == "numbers" and words and not option["choices"]:
        text = "Numbers | Words"
    else:
        parts = [] if kind == "choice" else [TYPES[kind]]
        text = " | ".join(parts + ([f"Literal[{', '.join(map(repr, words))}]"] if words else []))
    return text if default(option) is not None else text + " | None"


def table(command: str, without=frozenset()) -> dict[str, dict]:
    named = {spelled(o["name"]): o for o in _core.options_of(command)}
    return {name: o for name, o in named.items() if name not in without}


def check(function: str, known, given) -> None:
    """Refuses keywords that the function does not have, as Python does."""
    for name in given:
        if name not in known:
            near = _core.nearest(name, list(known))
            hint = f"; perhaps {near}" if near else ""
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{hint}")


def join_terms(options: dict) -> None:
    """A list of candidates as one text; commas inside brackets do not part terms."""
    terms = options.get("candidates")
    if isinstance(terms, (list, tuple)):
        options["candidates"] = ", ".join(terms)


def in_python(text: str) -> str:
    """A line of the command line's help, with keywords for its options."""
    text = re.sub(r"--([a-z-]+)(?: (auto|dropout|trajectory|regression|bootstrap|ensemble)\b)?",
                  lambda m: spelled(m[1]) + (f"={m[2]!r}" if m[2] else ""), text)
    return text.replace("exit code 1", "with the warning NotTrusted")


def document(options: dict[str, dict]):
    """Gives a function that takes ``**options`` their signature and the list of them in its
    docstring. The parameters before them stay."""

    def decorate(function):
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        taken = {p.name for p in own}
        new = {name: o for name, o in options.items() if name not in taken}
        groups = list(dict.fromkeys(["", *(o["group"] for o in new.values())]))
        function.__signature__ = signature.replace(parameters=own + [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default(o),
                              annotation=type_of(o))
            for name, o in new.items()])
        lines, group = [], ""
        for name, o in sorted(new.items(), key=lambda item: groups.index(item[1]["group"])):
            if o["group"] != group:
                group = o["group"]
                lines += ["", in_python(group) + ":", ""]
            what = " | ".join(([] if o["type"] == "choice" else [o["value"] or "bool"])
                              + o["choices"])
            lines.append(f"{name} : {what}, default {default(o)!r}")
            lines.append("    " + in_python(" ".join(o["help"].split())))
        indent = "\n    "
        function.__doc__ = (function.__doc__ or "").replace("%OPTIONS%", indent.join(lines))
        return function

    return decorate
