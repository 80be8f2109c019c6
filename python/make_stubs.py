"""python -P python/make_stubs.py, with the package installed, writes python/odecast/__init__.pyi from the functions
themselves, whose keywords come from the command line's table."""

from __future__ import annotations

import inspect
import pathlib

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
Progress = bool | Callable[[str, float], object] | None

__version__: str
'''

TYPES = {  # of parameters that are not options
    "source": "Any", "states": "Any", "drive": "Any", "data": "Any", "report": "Path | None", "title": "str | None",
    "progress": "Progress", "path": "Path", "init": "npt.ArrayLike | None", "at": "Any", "samples": "int",
    "posterior": "Model | Callable[[np.random.Generator], Callable[[float, Array], npt.ArrayLike]] | Any",
    "variables": "Words | None", "forecast": "Forecast | Path", "truth": "Any", "system": "str", "axes": "Any",
    "u": "npt.ArrayLike", "return_sd": "bool", "format": 'Literal["text", "latex", "json", "c"]', "all": "bool",
    "centre": 'Literal["mean", "median"]',
}
RETURNS = {"Model.equations": "Any", "Model.predict": "Any", "Model.forecast": "Any", "Data.to_dataframe": "Any",
           "Forecast.to_dataframe": "Any", "Forecast.to_xarray": "Any", "Forecast.plot": "Any"}


def kind_of(name: str, option: dict) -> str:
    """The type of an option's values."""
    if not option["value"]:
        return "bool"
    if option["choices"]:
        return f"Literal[{', '.join(repr(c) for c in option['choices'])}]"
    value = option["value"]
    if name == "set":
        return "dict[str, float] | str"
    if name in ("variables", "inputs", "schedule"):
        return "Words"
    if "…" in value:
        return "Numbers"
    if value in ("NAME", "ID", "TEXT"):
        return "str"
    return "float | str" if option["initial"] in ("auto", "all") else "float"


def parameters(function, options: dict[str, dict]) -> str:
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
        own = p.name not in options or (p.kind is not p.KEYWORD_ONLY)
        kind = TYPES[p.name] if own else kind_of(p.name, options[p.name])
        if p.default is None and "None" not in kind and kind != "Any":
            kind += " | None"
        parts.append(f"{p.name}: {kind}" + ("" if p.default is p.empty else f" = {p.default!r}"))
    return ", ".join(parts)


def returns(name: str, function) -> str:
    if name in RETURNS:
        return RETURNS[name]
    text = inspect.signature(function).return_annotation
    return {"np.ndarray": "Array", "list[np.ndarray]": "list[Array]", "np.ndarray | None": "Array | None",
            "dict": "dict[str, Any]", "dict | None": "dict[str, Any] | None"}.get(text, text if isinstance(text, str) else "None")


def class_stub(cls, options_of) -> list[str]:
    name = cls.__name__
    lines = [f"class {name}:"]
    for member, value in vars(cls).items():
        if member.startswith("_") and member not in ("__len__", "__getitem__"):
            continue
        function = getattr(value, "fget", None) or getattr(value, "func", None)
        if function is not None:
            lines += ["    @property", f"    def {member}(self) -> {returns(f'{name}.{member}', function)}: ..."]
        elif member == "__getitem__":
            lines += ["    def __getitem__(self, which: int | str) -> Trajectory: ...",
                      "    def __iter__(self) -> Iterator[Trajectory]: ..."]
        elif inspect.isfunction(value):
            lines.append(f"    def {member}({parameters(value, options_of(value))}) -> {returns(f'{name}.{member}', value)}: ...")
    return lines


def stubs() -> str:
    from odecast import _data, _forecast, _model

    tables = {odecast.fit: _model._FIT, odecast.read: _data._READ, odecast.simulate: _data._SIMULATE,
              odecast.forecast: _forecast._DRAWS, odecast.score: _forecast._SCORE, odecast.Data.split: _data._SPLIT,
              odecast.Model.forecast: _model._FORECAST, odecast.Model.evaluate: _model._EVALUATE,
              odecast.Model.calibrate: _model._EVALUATE, odecast.Forecast.report: _forecast._PAGE}
    options_of = lambda function: tables.get(function, {})  # noqa: E731
    lines = [HEAD, "class NotTrusted(UserWarning): ...", "", "class Trajectory(NamedTuple):", "    id: str",
             "    times: Array", "    states: Array", "    inputs: Array", ""]
    for cls in (odecast.Data, odecast.Model, odecast.Forecast):
        lines += [*class_stub(cls, options_of), ""]
    for function in (odecast.read, odecast.simulate, odecast.fit, odecast.load, odecast.forecast, odecast.read_forecast,
                     odecast.score):
        name = function.__name__
        lines.append(f"def {name}({parameters(function, options_of(function))}) -> {returns(name, function)}: ...")
    regressor = odecast.ODERegressor
    init = ", ".join(f"{p.name}: Any = {p.default!r}" for p in inspect.signature(regressor).parameters.values())
    lines += ["", "class ODERegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):", "    model_: Model",
              f"    def __init__(self, {init}) -> None: ..."]
    for member in ("fit", "predict", "simulate", "forecast", "score"):
        parts = [p.name if p.name == "self" else f"**{p.name}: Any" if p.kind is p.VAR_KEYWORD else
                 f"{p.name}: Any" + ("" if p.default is p.empty else f" = {p.default!r}")
                 for p in inspect.signature(getattr(regressor, member)).parameters.values()]
        result = {"fit": "ODERegressor", "forecast": "Forecast", "score": "float"}.get(member, "Array")
        lines.append(f"    def {member}({', '.join(parts)}) -> {result}: ...")
    return "\n".join(lines).replace(", overload", "") + "\n"


if __name__ == "__main__":
    pathlib.Path(__file__).with_name("odecast").joinpath("__init__.pyi").write_text(stubs())
