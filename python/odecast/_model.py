"""Models: fitted, saved, loaded, asked."""

from __future__ import annotations

import html
import keyword
import operator
import re
import os
import warnings
from typing import Literal

import numpy as np

from . import _core
from ._coefficients import Coefficients, Covariance, Draws
from ._data import (Data, as_data, contiguous, counted, is_frame, is_path, plain, read, time_word,
                    whole)
from ._options import FILES, READING, Part, check, document, join_terms, table
from ._progress import watched

_FIT = table("fit", FILES)
_FORECAST = table("forecast", FILES | {"lyapunov", "system", *READING})
_EVALUATE = table("evaluate", FILES)
_FILTER = table("filter", FILES | {"state", "model", "coefficients"})


class NotTrusted(UserWarning):
    """A result that is there but not to be trusted: training that did not converge, too few
    trajectories.

    >>> import odecast
    >>> issubclass(odecast.NotTrusted, UserWarning)
    True
    """


def _warn_of(judged: dict) -> None:
    if judged["noisy_truth"]:
        warnings.warn("the truth looks noisy, and bands of the state do not hold noise: give "
                      "observations=True", NotTrusted, stacklevel=3)
    if judged["blown_up"] > 0.05:
        warnings.warn(f"{100 * judged['blown_up']:.0f} % of the trajectories blow up, and what is "
                      "said is of the others: give a smaller horizon, or fit again", NotTrusted,
                      stacklevel=3)


def spelled_call(function: str, positional: list, options: dict) -> str:
    """The call as text, for the page's "how this was made"."""

    def short(value):
        text = repr(value.tolist() if isinstance(value, np.ndarray) else value)
        return text if len(text) < 80 else "…"

    parts = [f"{k}={short(v)}" for k, v in options.items() if v is not None]
    return f"{function}({', '.join([*map(short, positional), *parts])})"


@document(_FIT)
def fit(data, *, report=None, title=None, progress=None, **options) -> Model:
    """Learns a model from observations. Without options: the polynomial equations that the
    observations support, with the posterior of their coefficients (``posterior="trajectory"``).
    What holds for one method only stands under its heading below; None is the method's own choice,
    which the text names.

    Parameters
    ----------
    data : Data, or what :func:`read` takes
        A pair ``(t, u)`` are times and states.
    report : path
        Also write a page about the fit: one HTML file that opens anywhere.
    title : str
        Of that page.
    progress : bool or callable
        A bar (tqdm's, where installed) after a second; by default where somebody looks. A callable
        gets what is being done and the fraction done; what it raises stops the fit.

    %OPTIONS%

    >>> import odecast
    >>> data = odecast.simulate("SprottB", until=20, step=0.02, noise=0.01)
    >>> model = odecast.fit(data)
    >>> print(model.equations(set="best").strip())
    dx/dt = ...(±...) y z
    dy/dt = ...(±...) x - ...(±...) y
    dz/dt = -...(±...) x y + ...(±...)
    """
    check("fit", _FIT, options)
    join_terms(options)
    asked = dict(options)
    reading = {name: options.pop(name) for name in READING if name in options}
    plan = _core.plan_fit(options)
    if plan.keeps_missing and not isinstance(data, Data):
        reading.setdefault("missing", "keep")
    data = as_data(data, **reading)
    call = spelled_call("odecast.fit", [], {"data": data._core.name, **asked})
    with watched(progress) as bar:
        result = _core.fit(data._core, plan, None if report is None else os.fspath(report),
                           title or "", bar, call)
    if result.complaint:
        if result.model is None:
            raise RuntimeError(result.complaint)
        warnings.warn(result.complaint, NotTrusted, stacklevel=2)
    return Model(result.model, data._index)


def load(path) -> Model:
    """A model from the file that :meth:`Model.save` or ``odecast fit`` wrote.

    >>> import odecast, tempfile, os
    >>> model = odecast.fit(odecast.simulate("SprottB", until=2))
    >>> with tempfile.TemporaryDirectory() as place:
    ...     model.save(os.path.join(place, "model.json"))
    ...     odecast.load(os.path.join(place, "model.json")).equations() == model.equations()
    True
    """
    return Model(_core.load(os.fspath(path)))


class Model:
    """A fitted model of du/dt = f(u), or of the next state of a map. Made by :func:`fit` and
    :func:`load`.

    >>> import odecast
    >>> odecast.fit(odecast.simulate("SprottB", until=2))
    <odecast.Model of x, y, z: 101 rows, converged>
    """

    def __init__(self, core, index=None):
        self._core = core
        self._index = index  # the name of the times where they were the index of a DataFrame

    variables = Part("list[str]", "Names of the variables.")
    inputs = Part("list[str]", "Names of what drives the system.")
    kind = Part("str", '``"flow"`` for du/dt, ``"map"`` for the next state.')
    last_time = Part("float", "Where the data end: forecasts without a start continue from here.")
    last_state = Part("np.ndarray", "The last observation.")
    step = Part("float", "Usual spacing of the data's rows.")
    summary = Part(
        "dict", "What ``odecast fit --json`` prints; of a model from a file what that holds of it.")
    calibration = Part("dict | None", "Of a calibrated model what ``odecast calibrate --json`` "
                                      "prints, or what its file holds of it; else None.")

    def predict(self, u, return_sd: bool = False):
        """The right-hand side f(u), in the units of the data: its mean over the draws, and its
        spread.

        Parameters
        ----------
        u : array
            A state, behind it the inputs of a driven system; or a row for each of several.
        return_sd : bool
            Give the standard deviation over the draws too.

        >>> import odecast
        >>> data = odecast.simulate("SprottB", init=[1, 1, 1], until=10, step=0.002)
        >>> odecast.fit(data).predict([1.0, 2.0, 3.0]).round(6)
        array([ 6., -1., -1.])
        """
        if type(u) is not np.ndarray or u.dtype != np.float64 or not u.flags.c_contiguous:
            u = contiguous(u)
        return self._core.predict(u, return_sd)

    def equations(self, format: Literal["text", "latex", "json", "c", "python", "sympy"] = "text",
                  all: bool = False, centre: Literal["mean", "median"] | None = None,
                  set: Literal["best", "average"] | None = None):
        """The learnt equations.

        Parameters
        ----------
        format : str
            ``"text"`` and ``"latex"`` to read, ``"c"`` and ``"python"`` to compute with, as text;
            ``"sympy"``: a dictionary of SymPy expressions, one per variable; ``"json"``: a
            dictionary with exact mean, standard deviation and probability of every coefficient.
            ``"python"`` defines ``f(t, u)`` with du/dt as a list, for SciPy's ``solve_ivp``;
            measured inputs of a driven system are a third argument.
        all : bool
            Show small terms too, which text and LaTeX leave out.
        centre : str
            ``"median"`` is for a bootstrap.
        set : str
            ``"best"``: the most probable set of terms; ``"average"``: over all sets, which
            forecasts use. By default text shows both, LaTeX and SymPy the best, C and Python the
            average.

        >>> import odecast
        >>> model = odecast.fit(odecast.simulate("SprottB", until=2))
        >>> model.equations("json")["variables"]
        ['x', 'y', 'z']
        >>> space = {}
        >>> exec(model.equations("python"), space)
        >>> [round(rate, 4) for rate in space["f"](0, [1.0, 2.0, 3.0])]
        [6.0, -1.0, -1.0]
        """
        formats = ("text", "latex", "json", "c", "python", "sympy")
        if format not in formats:
            raise ValueError(f"format=: found {format!r}, expected one of {', '.join(formats)}. "
                             "Use one of these.")
        given = {"format": format, "all": all, "centre": centre, "set": set}
        given = {k: v for k, v in given.items() if v not in (None, False)}
        if format not in ("python", "sympy"):
            return self._core.equations(given)
        self._core.equations({**given, "format": "c"})  # refuses what cannot be
        found = self._core.equations({"format": "json"})
        best = (set or ("best" if format == "sympy" and centre is None else "average")) == "best"
        offsets = found.get("offsets", [0] * len(self.variables + self.inputs))
        if best and "best" in found:
            found = found["best"]
        rows = [[(term[centre or "mean"], term["powers"]) for term in equation["terms"]
                 if "powers" in term] for equation in found["equations"]]
        functions = self._core.function_shares("best" if best else centre or "mean")
        if format == "python":
            return self._python(rows, functions, offsets, "the most probable set of terms" if best
                                else f"the {centre or 'mean'} over the posterior")
        return self._sympy(rows, functions, offsets)

    def _code(self, expression: str, symbols: list, numbers: dict, functions: dict) -> str:
        """An expression of ours as Python, with these symbols for the arguments."""
        names = self.variables + self.inputs

        def word(found):
            text = found.group()
            if text[0] in "\"`":
                return symbols[names.index(text[1:-1].replace(text[0] * 2, text[0]))]
            if text == "^":
                return "**"
            if text[0] in ".0123456789":
                return text
            if text in names:
                return symbols[names.index(text)]
            return f"({numbers[text]!r})" if text in numbers else functions[text]

        return re.sub(r'"(?:[^"]|"")*"|`(?:[^`]|``)*`|\^|[0-9.]+(?:[eE][+-]?[0-9]+)?'
                      r'|[^\s0-9.+\-*/^(),"`][^\s.+\-*/^(),"`]*', word, expression)

    def _python(self, rows: list, functions: list, offsets: list, what: str) -> str:
        """The source of f(t, u), or f(t, u, w) where measured inputs w drive the system."""
        names, measured = self.variables + self.inputs, self._measured()
        given = names[: len(self.variables) + len(measured)]
        if all(n.isidentifier() and n.isascii() and not keyword.iskeyword(n)
               and n not in ("f", "t", "u", "w") for n in given):
            unpack = [f"    {', '.join(part)}{',' * (len(part) == 1)} = {letter}\n"
                      for part, letter in ((self.variables, "u"), (measured, "w")) if part]
            symbols = given
        else:
            unpack = []
            symbols = [f"u[{k}]" for k in range(len(self.variables))]
            symbols += [f"w[{k}]" for k in range(len(measured))]
        symbols = symbols + ["t"] * (len(names) - len(given))  # an input that is the time itself
        known = {name: f"_math.{name}" for name in ("sin", "cos", "tan", "exp", "log", "sqrt",
                                                    "tanh", "pi")}
        known |= {"abs": "abs", "sign": "_sign"}
        codes = [(i, c, self._code(g, symbols, numbers, known)) for i, c, g, numbers in functions]
        symbols = [symbol if offset == 0 else f"({symbol} - {offset!r})".replace("- -", "+ ")
                   for symbol, offset in zip(symbols, offsets)]

        def product(coefficient, powers):
            return " * ".join([repr(coefficient)] + [
                symbol if power == 1 else f"{symbol}**{power}"
                for symbol, power in zip(symbols, powers) if power])

        left = "the next" if self.kind == "map" else "d/dt of"
        sums = [" + ".join([product(*term) for term in row]
                           + [f"{c!r} * ({code})" for k, c, code in codes if k == i])
                .replace("+ -", "- ") for i, row in enumerate(rows)]
        lines = "".join(f"        {total or '0.0'},\n" for total in sums)
        about = f"# {left} u = ({plain(self.variables)})"
        about += f", driven by w = ({plain(measured)})" if measured else ""
        if any("_math." in code for _, _, code in codes):
            about = "import math as _math\n\n" + about
        if any("_sign(" in code for _, _, code in codes):
            about = "def _sign(x):\n    return (x > 0) - (x < 0)\n\n\n" + about
        return (f"{about}: {what}, learnt by odecast.\ndef f(t, u{', w' if measured else ''}):\n"
                f"{''.join(unpack)}    return [\n{lines}    ]\n")

    def _sympy(self, rows: list, functions: list, offsets: list) -> dict:
        try:
            import sympy
        except ImportError as error:
            raise ImportError('equations("sympy") needs SymPy: pip install sympy') from error
        plain_symbols = [sympy.Symbol(name) for name in self.variables + self.inputs]
        symbols = [symbol - sympy.Float(offset) if offset else symbol
                   for symbol, offset in zip(plain_symbols, offsets)]
        known = {name: f"sympy.{name}" for name in ("sin", "cos", "tan", "exp", "log", "sqrt",
                                                    "tanh", "sign", "pi")} | {"abs": "sympy.Abs"}
        places = [f"s[{k}]" for k in range(len(plain_symbols))]
        result = {variable: sympy.Add(*(
            sympy.Mul(sympy.Float(coefficient), *(s**p for s, p in zip(symbols, powers)))
            for coefficient, powers in row)) for variable, row in zip(self.variables, rows)}
        for i, coefficient, expression, numbers in functions:
            value = eval(self._code(expression, places, numbers, known),
                         {"__builtins__": {}, "sympy": sympy, "s": plain_symbols})
            result[self.variables[i]] += sympy.Float(coefficient) * value
        return result

    @property
    def coefficients(self) -> Coefficients:
        """Mean, standard deviation and probability of every coefficient, with their names.

        >>> import odecast
        >>> known = odecast.fit(odecast.simulate("SprottB", until=10)).coefficients
        >>> float(known.probability[0, known.terms.index("y z")].round(4))
        1.0
        """
        terms, powers = self._monomials()
        monomials = len(terms) - len(self._core.functions)
        place = {tuple(p): k for k, p in enumerate(powers[:monomials].tolist())}
        place |= {name: k for k, name in enumerate(terms) if k >= monomials}
        parts = {name: np.zeros((len(self.variables), len(terms)))
                 for name in ("mean", "sd", "probability")}
        for i, equation in enumerate(self._core.equations({"format": "json"})["equations"]):
            for term in equation["terms"]:
                for name, array in parts.items():
                    key = tuple(term["powers"]) if "powers" in term else term["expression"]
                    array[i, place[key]] = term[name]
        return Coefficients(list(self.variables), terms, powers, **parts)

    @property
    def covariance(self) -> Covariance:
        """That of the coefficients of the most probable set of terms; of a model without such sets
        take that of :meth:`draws`.

        >>> import odecast
        >>> found = odecast.fit(odecast.simulate("SprottB", until=10, noise=0.01)).covariance
        >>> found.matrix.shape == (len(found.names),) * 2
        True
        """
        places, mean, matrix = self._core.covariance
        terms, _ = self._monomials()
        numbers = self._core.numbers
        names = [(self.variables[i], terms[k]) if i >= 0 else ("", numbers[k]) for i, k in places]
        return Covariance(names, mean, matrix,
                          self._core.best_probability)

    def draws(self, n: int = 1000, *, seed: int = 1, progress=None) -> Draws:
        """Coefficients drawn from the posterior: those of the trajectories that a forecast of the
        same ``seed`` integrates, in their order.

        Parameters
        ----------
        n : int
            How many.
        seed : int
            Of the random numbers.
        progress : bool or callable
            As for :func:`fit`.

        >>> import odecast
        >>> model = odecast.fit(odecast.simulate("SprottB", until=10))
        >>> model.draws(200).values.mean(axis=0).round(4)[1, :3] + 0
        array([ 0.,  1., -1.])
        """
        n, seed = operator.index(n), operator.index(seed)
        if n < 1:
            raise ValueError(f"n=: found {n}, expected a whole number from 1 on. Ask for draws.")
        if not 0 <= seed < 2**64:
            raise ValueError(f"seed=: found {seed}, expected a whole number from 0 to 2^64 - 1. "
                             "Choose one of these.")
        terms, powers = self._monomials()
        with watched(progress) as bar:
            values, start, numbers = self._core.draws(n, seed, bar)
        inside = {} if numbers is None else dict(zip(self._core.numbers, numbers.T))
        return Draws(values.reshape(n, len(self.variables), len(terms)), list(self.variables),
                     terms, powers, start, seed, inside)

    def _monomials(self) -> tuple[list[str], np.ndarray]:
        terms, powers = zip(*self._core.monomials)
        return list(terms), np.array(powers)

    def save(self, path) -> None:
        """Writes the model as JSON, the same bytes as ``odecast fit`` does. See :func:`load` for an
        example.

        >>> import odecast, tempfile, os
        >>> model = odecast.fit(odecast.simulate("SprottB", until=2))
        >>> with tempfile.TemporaryDirectory() as place:
        ...     model.save(os.path.join(place, "model.json"))
        """
        self._core.save(os.fspath(path))

    def forecast(self, init=None, *, at=None, drive=None, samples: int = 5, progress=None,
                 **options):
        """Integrates many draws of the model forward: mean and band of every variable.

        Parameters
        ----------
        init : array
            The start; without it the forecast continues from the last observation.
        at : array of times, Data or path
            Output at these times instead of ``until`` and ``step``.
        drive : Data, pair (times, values), DataFrame or path
            The future of the inputs of a driven system; by default that of ``at``, where it has
            them.
        samples : int
            How many trajectories the result carries whole, at most 1000.
        progress : bool or callable
            As for :func:`fit`.

        %OPTIONS%

        With ``field="mean"`` or ``"point"`` the result is one trajectory, a :class:`Data`.

        >>> import odecast
        >>> model = odecast.fit(odecast.simulate("SprottB", until=10))
        >>> fc = model.forecast([-1, -1, -1], until=1, step=0.1, draws=100)
        >>> fc
        <odecast.Forecast of x, y, z: t = 0 … 1, 100 of 100 draws kept>
        """
        from ._forecast import finish

        check("forecast", _FORECAST, options)
        keywords = {name: time_word(value) for name, value in options.items()}
        call = spelled_call("model.forecast", [] if init is None else [init], options)
        if init is not None:
            keywords["init"] = contiguous(init)
        if at is not None:
            keywords["at"] = "times"
            if is_path(at) or is_frame(at):
                at = read(at)
            if isinstance(at, Data):
                if drive is None and self._measured() and at.inputs:
                    drive = at
                at = self._times(at, options)
            at = self._numbers(at)
        if drive is not None:
            keywords["drive"] = "inputs"
            drive = self._signal(drive, options)
        elif at is None:
            keywords.pop("trajectory", None)
        if options.get("field") in ("mean", "point"):
            with watched(progress) as bar:
                one = _core.forecast_single(self._core, keywords, at, drive, bar)
            if one.complaint:
                warnings.warn(one.complaint, NotTrusted, stacklevel=2)
            return Data(one.data, self._index)
        with watched(progress) as bar:
            return finish(_core.forecast_model(self._core, keywords, at, drive, samples, bar, call),
                          self._index)

    @document(_FILTER)
    def filter(self, data, *, progress=None, **options) -> Filtered:
        """Follows a system row by row: the state and its band given all rows so far, and what was
        foretold before each row was seen. Columns and cells may be missing, times uneven.

        Parameters
        ----------
        data : Data, or what :func:`read` takes
            With at least one of the model's variables.
        progress : bool or callable
            As for :func:`fit`.

        %OPTIONS%

        >>> import odecast
        >>> model = odecast.fit(odecast.simulate("Lorenz", until=10, step=0.02, noise=0.02))
        >>> rows = odecast.simulate("Lorenz", init=[3, 4, 20], until=5, step=0.1, noise=0.02)
        >>> filtered = model.filter(rows)
        >>> filtered.mean.shape, filtered.status[-1]
        ((51, 3), 'ok')
        """
        from ._filter import filter_rows

        check("filter", _FILTER, options)
        reading = {name: options.pop(name) for name in READING if name in options}
        if not isinstance(data, Data):
            reading.setdefault("missing", "keep")
        return filter_rows(self, as_data(data, **reading), progress, options)

    def evaluate(self, truth, *, progress=None, **options) -> dict:
        """Forecasts from many rows of held-out data and scores them together: the dictionary that
        ``odecast evaluate --json`` prints. Coverage and width of the band, proper scores, ranks,
        valid times, beside climatology and persistence, with standard errors over starts.

        Parameters
        ----------
        truth : Data, or what :func:`read` takes
            With the model's variables, held out from the fit.
        progress : bool or callable
            As for :func:`fit`.

        %OPTIONS%

        >>> import odecast
        >>> train, test = odecast.simulate("SprottB", until=40, step=0.02).split(holdout=0.5)
        >>> model = odecast.fit(train)
        >>> judged = model.evaluate(test, starts=20, horizon=2, draws=50)
        >>> judged["starts"], sorted(judged["model"])[:4]
        (20, ['coverage', 'crps', 'energy', 'interval_score'])
        """
        judged = self._judged("evaluate", truth, progress, options)
        _warn_of(judged)
        return judged

    def calibrate(self, truth, *, progress=None, **options) -> Model:
        """A model whose bands hold their level on held-out data (conformal prediction, for each
        time after the start by itself): what ``odecast calibrate`` writes. Its forecasts are
        calibrated unless ``raw=True``; its :attr:`calibration` says what was found.

        Parameters
        ----------
        truth : Data, or what :func:`read` takes
            With the model's variables, held out from the fit.
        progress : bool or callable
            As for :func:`fit`.

        %OPTIONS%

        >>> import odecast
        >>> train, late = odecast.simulate("SprottB", until=40, step=0.02).split(holdout=0.5)
        >>> model = odecast.fit(train)
        >>> calibrated = model.calibrate(late, starts=40, horizon=2, draws=50)
        >>> calibrated.calibration["starts"], calibrated.calibration["level"]
        (40, 0.95)
        """
        model = Model(self._judged("calibrate", truth, progress, options), self._index)
        _warn_of(model.calibration)
        return model

    def _judged(self, function: str, truth, progress, options: dict):
        """What that function of C++ makes of the data, which have the model's variables."""
        check(function, _EVALUATE, options)
        truth, keywords = self._truth(truth, options)
        with watched(progress) as bar:
            return getattr(_core, function)(self._core, truth, keywords, bar)

    def _truth(self, truth, options: dict):
        """The data to judge by, and the keywords that say how."""
        reading = {name: value for name, value in options.items() if name in READING}
        keywords = {name: value for name, value in options.items() if name not in READING}
        if not isinstance(truth, Data):
            reading = {**reading, "variables": self.variables, "inputs": self._measured() or None}
        return whole(as_data(truth, **reading))._core, keywords

    def _measured(self) -> list[str]:
        return self._core.measured_inputs

    def _trajectory_of(self, data: Data, options: dict) -> str:
        """The one asked for; by default the one that the model continues, else the last."""
        wanted = options.get("trajectory")
        if wanted is None:
            wanted = self._core.last_trajectory if self._core.last_trajectory in data.ids else ""
        return wanted

    def _signal(self, drive, options):
        names = self._measured()
        if is_path(drive) or is_frame(drive):
            drive = read(drive, variables=names[:1], inputs=names[1:] or None)
            run = drive[self._trajectory_of(drive, options)]
            return (self._times(drive, options),
                    np.ascontiguousarray(np.hstack([run.states, run.inputs])))
        if isinstance(drive, Data):
            run = drive[self._trajectory_of(drive, options)]
            return self._times(drive, options), run.inputs
        times, values = drive
        return self._numbers(times), contiguous(values)

    def _times(self, data: Data, options: dict) -> np.ndarray:
        """Times of the trajectory that belongs to the forecast, counted as the model does."""
        return data._core.times_as(data._core.find(self._trajectory_of(data, options)),
                                   self._core.calendar)

    def _numbers(self, times) -> np.ndarray:
        """Times as the model counts them."""
        numbers, calendar = counted(times, {}, self._core.calendar)
        if calendar is not None and self._core.calendar is None:
            raise ValueError("times: found dates, expected numbers, as the data of the model have "
                             "them. Give numbers.")
        return numbers[0]

    def __reduce__(self):
        return _from_text, (self._core.to_text(), *self._core.told(), self._index)

    def __repr__(self) -> str:
        rows, status = self.summary["rows"], self.summary["status"]
        return f"<odecast.Model of {plain(self.variables)}: {rows} rows, {status}>"

    def _repr_html_(self) -> str:
        head = f"<p>{html.escape(repr(self)[1:-1])}</p>"
        if not self._core.polynomial:
            return head + "<p>A general network: no equations.</p>"
        probability, average = self._core.best_probability, self._equations_html(False)
        if probability is None or probability > 0.995:
            shown = average
        else:
            shown = (f"<p>The most probable set of terms, of probability {probability:.2g}:</p>"
                     f"{self._equations_html(True)}<details><summary>The average over all sets, "
                     f"which forecasts use</summary>{average}</details>")
        return f'{_STYLE}<div class="odecast-model">{head}{shown}</div>'

    def _equations_html(self, best: bool) -> str:
        """As on a page, with words for a notebook."""
        text = self._core.equations_html(best)
        words = {"<code>odecast equations --all</code>": "<code>model.equations(all=True)</code>"}
        if best:
            words["over the draws"] = "in this set"
        if 'class="unsure"' not in text:
            words[" Terms in grey are within two standard deviations of zero."] = ""
        for theirs, ours in words.items():
            text = text.replace(theirs, ours)
        return text


# What the pages' style sheet does, for a notebook, whose colours are not known: grey is what is
# half transparent.
_STYLE = """<style>
.odecast-model .equation { display: flex; align-items: center; gap: 0.5em; padding: 0.3em 0; }
.odecast-model .equation > math { flex: none; }
.odecast-model .equation > div { display: flex; flex-wrap: wrap; align-items: baseline;
  gap: 0.3em 0.45em; }
.odecast-model math { font-size: 1.12em; }
.odecast-model math .sd { font-size: 0.88em; opacity: 0.7; }
.odecast-model math.unsure { opacity: 0.45; }
.odecast-model .hint { opacity: 0.7; font-size: 0.9em; }
</style>"""


def _from_text(text: str, summary: str, calibration: str, index: str | None) -> Model:
    """What pickle and copy restore."""
    return Model(_core.model_from_text(text, summary, calibration), index)


Model.forecast = document(_FORECAST)(Model.forecast)
Model.evaluate = document(_EVALUATE)(Model.evaluate)
Model.calibrate = document(_EVALUATE)(Model.calibrate)
