"""python -P python/make_stubs.py, with the package installed, writes python/odecast/__init__.pyi
from the functions themselves, whose keywords and types come from the tables of the library and of
the command line."""

from __future__ import annotations

import inspect
import pathlib
import re

import odecast

HEAD = '''# Written by python/make_stubs.py.
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, overload

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin

Array = npt.NDArray[np.float64]
Numbers = float | Sequence[float] | npt.NDArray[Any]
Path = str | os.PathLike[str]
Words = str | Sequence[str]
Draw = Callable[[np.random.Generator], Callable[[float, Array], npt.ArrayLike]]
Progress = bool | Callable[[str, float], object] | None

__version__: str
'''

TYPES = {  # of parameters that are not options
    "source": "Any", "states": "Any", "drive": "Any", "data": "Any", "report": "Path | None",
    "title": "str | None", "progress": "Progress", "path": "Path", "init": "npt.ArrayLike | None",
    "at": "Any", "samples": "int", "posterior": "Model | Draw | Any",
    "variables": "Words | None", "forecast": "Forecast | Path", "truth": "Any", "system": "str",
    "history": "Any",
    "axes": "Any", "model": "Model | Path", "of": "Model | Path", "output": "Path | None",
    "u": "npt.ArrayLike", "t": "Any", "y": "Any", "inputs": "npt.ArrayLike",
    "columns": "Words | None"}
RETURNS = {f"{name}.to_dataframe": "Any" for name in ("Data", "Forecast", "Coefficients",
                                                      "Covariance")}
RETURNS |= {f"{name}.to_xarray": "Any" for name in ("Forecast", "Draws")}
RETURNS |= {f"Filtered.{part}": "Any" for part in ("to_dataframe", "coefficients")}
RETURNS |= {"Draws.to_arviz": "Any", "Forecast.plot": "Any"}
# Where the type of what is returned depends on that of a parameter: its types, the one of the
# default first, and what they give.
OVERLOADS = {
    "Model.predict": ("return_sd", {"Literal[False]": "Array",
                                    "Literal[True]": "tuple[Array, Array]"}),
    "Model.equations": ("format", {"Literal['text', 'latex', 'c', 'python']": "str",
                                   "Literal['json', 'sympy']": "dict[str, Any]"}),
    "Model.forecast": ("field", {"Literal['draws']": "Forecast",
                                 "Literal['mean', 'point']": "Data"}),
    "systems": ("name", {"None": "list[str]", "str": "dict[str, Any]"})}


def parameters(function, chosen: str = "", kind_of_it: str = "", default: bool = True) -> str:
    """Those of a stub; ``chosen`` is of that type, with its default or without."""
    parts, star = [], False
    for p in inspect.signature(function).parameters.values():
        if p.kind is p.VAR_KEYWORD:
            continue
        if p.kind is p.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        if p.name == "self":
            parts.append("self")
            continue
        kind = TYPES[p.name] if p.annotation is p.empty else p.annotation
        if p.name == chosen:
            kind = kind_of_it
        if p.default is None and "None" not in kind and kind != "Any" and default:
            kind += " | None"
        given = p.default is not p.empty and (default or p.name != chosen)
        parts.append(f"{p.name}: {kind}" + (f" = {p.default!r}" if given else ""))
    return ", ".join(parts)


def function_stub(name: str, function, indent: str = "") -> list[str]:
    """Its line, or one for each of its overloads."""
    short = name.rpartition(".")[2]
    if name not in OVERLOADS:
        return [f"{indent}def {short}({parameters(function)}) -> {returns(name, function)}: ..."]
    chosen, kinds = OVERLOADS[name]
    lines = []
    for k, (kind, result) in enumerate(kinds.items()):
        lines += [f"{indent}@overload",
                  f"{indent}def {short}({parameters(function, chosen, kind, k == 0)}) -> "
                  f"{result}: ..."]
    return lines


def returns(name: str, function) -> str:
    if name in RETURNS:
        return RETURNS[name]
    text = inspect.signature(function).return_annotation
    text = text if isinstance(text, str) else "None"
    text = text.replace("np.ndarray", "Array")
    return re.sub(r"\bdict\b(?!\[)", "dict[str, Any]", text)


def class_stub(cls) -> list[str]:
    name = cls.__name__
    lines = [f"class {name}:"]
    for field, kind in inspect.get_annotations(cls).items():  # of a dataclass
        lines.append(f"    {field}: {kind.replace('np.ndarray', 'Array')}")
    for member, value in vars(cls).items():
        if member == "__init__" and cls is odecast.Filter:
            lines.append(f"    def __init__({parameters(value)}) -> None: ...")
        if isinstance(value, classmethod):
            made = parameters(getattr(cls, member))
            lines += ["    @classmethod", f"    def {member}(cls, {made}) -> {name}: ..."]
        if member.startswith("_") and member not in ("__len__", "__getitem__", "__array__"):
            continue
        function = getattr(value, "fget", None) or getattr(value, "func", None)
        if function is not None:
            lines += ["    @property",
                      f"    def {member}(self) -> {returns(f'{name}.{member}', function)}: ..."]
        elif member == "__array__":
            lines.append("    def __array__(self, dtype: npt.DTypeLike | None = None, "
                         "copy: bool | None = None) -> npt.NDArray[Any]: ...")
        elif member == "__getitem__":
            lines += ["    def __getitem__(self, which: int | str) -> Trajectory: ...",
                      "    def __iter__(self) -> Iterator[Trajectory]: ..."]
        elif inspect.isfunction(value):
            lines += function_stub(f"{name}.{member}", value, "    ")
    return lines


def stubs() -> str:
    lines = [HEAD, "class NotTrusted(UserWarning): ...", "", "class Trajectory(NamedTuple):",
             "    id: str", "    times: Array", "    states: Array", "    inputs: Array", "",
             "class Tuning(NamedTuple):", "    model: Model", "    summary: dict[str, Any]", ""]
    for cls in (odecast.Data, odecast.Coefficients, odecast.Covariance, odecast.Draws,
                odecast.Model, odecast.Forecast, odecast.Filtered, odecast.Filter):
        lines += [*class_stub(cls), ""]
    for function in (odecast.read, odecast.simulate, odecast.fit, odecast.load, odecast.forecast,
                     odecast.read_forecast, odecast.score, odecast.systems, odecast.lyapunov,
                     odecast.attractor, odecast.tune):
        lines += function_stub(function.__name__, function)
    regressor, options = odecast.ODERegressor, inspect.signature(odecast.fit).parameters
    init = ", ".join(f"{p.name}: {options[p.name].annotation} = {p.default!r}"
                     for p in inspect.signature(regressor).parameters.values())
    lines += ["", "class ODERegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):",
              "    model_: Model", f"    def __init__(self, {init}) -> None: ..."]
    for member in ("fit", "predict", "simulate", "forecast", "score"):
        parts = [p.name if p.name == "self" else f"**{p.name}: Any" if p.kind is p.VAR_KEYWORD else
                 f"{p.name}: Any" + ("" if p.default is p.empty else f" = {p.default!r}")
                 for p in inspect.signature(getattr(regressor, member)).parameters.values()]
        result = {"fit": regressor.__name__, "forecast": "Forecast", "score": "float"}
        result = result.get(member, "Array")
        lines.append(f"    def {member}({', '.join(parts)}) -> {result}: ...")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    pathlib.Path(__file__).with_name("odecast").joinpath("__init__.pyi").write_text(stubs())
