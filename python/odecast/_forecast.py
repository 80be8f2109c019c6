"""Forecasts: mean and band of the future, drawn, scored, saved."""

from __future__ import annotations

import csv
import html
import io
import os
import warnings
from functools import cached_property

import numpy as np

from . import _core
from ._data import as_data, contiguous, date_index, dates, plain, whole
from ._model import _FORECAST, Model, NotTrusted, spelled_call
from ._options import FILES, READING, Part, check, document, table
from ._progress import watched

_SCORE = table("score", FILES | {"model", *READING})
_DRAWS = {name: o for name, o in _FORECAST.items()
          if name not in ("init", "field", "mask_change", "masks", "raw", "threads", "trajectory")}
_PAGE = {name: o for name, o in table("forecast").items()
         if name in ("trajectory", "lyapunov", "system")}


def finish(core, index=None) -> Forecast:
    """The forecast; a warning where it is not to be trusted, an error where there is none."""
    if not core.complete:
        if len(core.times) < 2:
            raise RuntimeError(core.reason)
        warnings.warn(core.reason, NotTrusted, stacklevel=3)
    return Forecast(core, index)


class Forecast:
    """Mean and band of every variable at the output times, the start first. Made by
    :meth:`Model.forecast`.

    >>> import odecast
    >>> model = odecast.fit(odecast.simulate("SprottB", until=10))
    >>> fc = model.forecast(until=11, step=0.1, draws=50)
    >>> bool((fc.lower <= fc.mean).all() and (fc.mean <= fc.upper).all())
    True
    """

    def __init__(self, core, index=None):
        self._core = core
        self._index = index  # the name of the times where they were the index of a DataFrame

    variables = Part("list[str]", "Names of the variables: the columns of all arrays.")
    level = Part("float", "Confidence level of the bands.")
    summary = Part("dict", "What ``odecast forecast --json`` prints: draws asked, kept, "
                           "discarded, and why. Empty for one from a file.")
    mean = Part("np.ndarray", "Mean over the draws, times × variables.")
    sd = Part("np.ndarray", "Standard deviation over the draws.")
    band = Part("str", 'What ``lower`` and ``upper`` are: ``"quantiles"`` or ``"sd"``.')
    lower = Part("np.ndarray", "Lower edge of the band: the quantile of the draws for learnt "
                               "equations, mean - c sd for networks, or as ``bands`` says; "
                               "calibrated where the model is.")
    upper = Part("np.ndarray", "Upper edge of it.")
    q_lower = Part("np.ndarray | None",
                   'Lower quantile of the draws, but with ``bands="sd"``.')
    q_median = Part("np.ndarray | None", "Median.")
    q_upper = Part("np.ndarray | None", "Upper quantile.")
    observed_lower = Part("np.ndarray | None",
                          "Lower edge of the band of an observation, where its noise is known.")
    observed_upper = Part("np.ndarray | None", "Upper edge of it.")
    observed_q_lower = Part("np.ndarray | None",
                            "Lower quantile of an observation, with ``observations=True``.")
    observed_q_upper = Part("np.ndarray | None", "Upper quantile of it.")
    alive = Part("np.ndarray", "1 - P(blow-up by that time).")

    @cached_property
    def samples(self) -> np.ndarray:
        """The first draws whole, draws × times × variables; NaN after the end of one that blows up
        and counts until then."""
        samples = self._core.samples
        whole = np.full((len(samples), *self.mean.shape), np.nan)
        for k, sample in enumerate(samples):
            whole[k, : len(sample)] = sample
        return whole

    @cached_property
    def times(self) -> np.ndarray:
        """Output times, the start first: datetime64 where the data have dates."""
        return dates(self._core.calendar, self._core.times)

    def to_dataframe(self):
        """A pandas DataFrame with the columns of the CSV that :meth:`save` writes; the times are
        its index where they are dates or were that of the DataFrame of the fit.

        >>> import odecast
        >>> model = odecast.fit(odecast.simulate("SprottB", until=10))
        >>> fc = model.forecast(until=11, step=0.5, draws=50, bands="sd")
        >>> fc.to_dataframe().columns[:5].tolist()
        ['t', 'x_mean', 'x_sd', 'x_lower', 'x_upper']
        """
        import pandas

        head, rows = self._core.to_text().split("\n", 1)
        names = next(csv.reader([head]))
        calendar = self._core.calendar
        first = 0 if calendar is None else 1
        values = np.loadtxt(io.StringIO(rows), delimiter=",", ndmin=2,
                            usecols=range(first, len(names)))
        if calendar is not None:
            index = date_index(calendar, self._core.times, self._index or names[0])
            return pandas.DataFrame(values, columns=names[1:], index=index)
        frame = pandas.DataFrame(values, columns=names)
        if self._index is None:
            return frame
        return frame.set_index(frame.columns[0]).rename_axis(self._index or None)

    def to_xarray(self):
        """An xarray Dataset with the dimensions time, variable and, for the samples, draw.

        >>> import odecast
        >>> model = odecast.fit(odecast.simulate("SprottB", until=10))
        >>> dict(model.forecast(until=11, step=0.5, draws=50, samples=20).to_xarray().sizes)
        {'time': 3, 'variable': 3, 'draw': 20}
        """
        import xarray

        arrays = {}
        for name in ("mean", "sd", "lower", "upper", "q_lower", "q_median", "q_upper",
                     "observed_lower", "observed_upper", "observed_q_lower", "observed_q_upper"):
            values = getattr(self, name)
            if values is not None:
                arrays[name] = (("time", "variable"), values)
        arrays["alive"] = (("time",), self.alive)
        if len(self.samples):
            arrays["samples"] = (("draw", "time", "variable"), self.samples)
        coords = {"time": self.times, "variable": self.variables}
        if "samples" in arrays:
            coords["draw"] = np.arange(len(self.samples))
        return xarray.Dataset(arrays, coords=coords, attrs={"level": self.level, **{
            k: v for k, v in self.summary.items() if v is not None}})

    def plot(self, truth=None, variables=None, axes=None, *, history=None):
        """Draws the band, its centre and the band of an observation with Matplotlib, over the truth
        where given, and after the history: rows as far back as twice the length of the forecast.
        Returns the axes, one per variable.

        >>> import matplotlib
        >>> matplotlib.use("Agg")
        >>> import odecast
        >>> model = odecast.fit(odecast.simulate("SprottB", until=10))
        >>> len(model.forecast(until=11, step=0.1, draws=50).plot())
        3
        """
        import matplotlib.pyplot as plt
        from matplotlib.ticker import MaxNLocator

        names = self.variables if variables is None else list(variables)
        unknown = [name for name in names if name not in self.variables]
        if unknown:
            raise ValueError(f"variables: found {unknown[0]!r}, expected "
                             f"{', '.join(self.variables)}. Use these names.")
        if axes is None:
            _, axes = plt.subplots(len(names), 1, sharex=True, squeeze=False,
                                   figsize=(8, 2 * len(names)))
            axes = axes[:, 0]
        axes = np.atleast_1d(axes)
        first, last = self.times[0], self.times[-1]
        rows = [(as_data(data), label, begin, end, style) for data, label, begin, end, style
                in ((history, "history", first - 2 * (last - first), first, "k."),
                    (truth, "truth", first, last, "k" if self.observed_lower is None else "k."))
                if data is not None]
        for axis, name in zip(axes, names):
            i = self.variables.index(name)
            if self.observed_lower is not None:
                axis.fill_between(self.times, self.observed_lower[:, i], self.observed_upper[:, i],
                                  alpha=0.15, linewidth=0, color="C0", label="of an observation")
            axis.fill_between(self.times, self.lower[:, i], self.upper[:, i], alpha=0.3,
                              linewidth=0, color="C0", label=f"{100 * self.level:g} % band")
            centre, label = ((self.q_median, "median") if self.band == "quantiles"
                             else (self.mean, "mean"))
            axis.plot(self.times, centre[:, i], label=label)
            for data, label, begin, end, style in rows:
                if name not in data.variables:
                    continue
                run = data[-1]
                inside = (run.times >= begin) & (run.times <= end)
                axis.plot(run.times[inside], run.states[inside, data.variables.index(name)], style,
                          linewidth=1, markersize=3, alpha=0.6 if label == "history" else 1,
                          label=label)
            axis.set_ylabel(name)
        axes[-1].set_xlabel(self._index or self._core.time_name)
        if self._core.calendar is None and self.times[-1] - self.times[0] >= 4:
            # Ticks at whole years, never at 1922.5.
            axes[-1].xaxis.set_major_locator(MaxNLocator("auto", integer=True))
            axes[-1].ticklabel_format(axis="x", useOffset=False)
        axes[0].legend(loc="upper left", ncols=5, frameon=False)
        return axes

    def save(self, path) -> None:
        """Writes the CSV that ``odecast forecast`` writes, the same bytes.

        >>> import odecast, tempfile, os
        >>> model = odecast.fit(odecast.simulate("SprottB", until=10))
        >>> fc = model.forecast(until=11, step=0.1, draws=50)
        >>> with tempfile.TemporaryDirectory() as place:
        ...     fc.save(os.path.join(place, "forecast.csv"))
        ...     again = odecast.read_forecast(os.path.join(place, "forecast.csv"))
        >>> bool((again.mean == fc.mean).all())
        True
        """
        self._core.write(os.fspath(path))

    def report(self, path, truth=None, *, title=None, **options) -> None:
        """Writes a page about the forecast: one HTML file that opens anywhere and loads nothing.

        Parameters
        ----------
        truth : Data, or what :func:`read` takes
            What happened: shown and scored.
        title : str
            Of the page.

        %OPTIONS%

        >>> import odecast, tempfile, os
        >>> model = odecast.fit(odecast.simulate("SprottB", until=10))
        >>> fc = model.forecast(until=11, step=0.1, draws=50)
        >>> with tempfile.TemporaryDirectory() as place:
        ...     fc.report(os.path.join(place, "page.html"))
        """
        check("report", _PAGE, options)
        truth = None if truth is None else as_data(truth)
        self._core.report(os.fspath(path), truth and truth._core, {**options, "title": title})

    def svg(self, truth=None) -> str:
        """Mean and band as an SVG figure, over the truth where given.

        >>> import odecast
        >>> model = odecast.fit(odecast.simulate("SprottB", until=10))
        >>> model.forecast(until=11, step=0.1, draws=50).svg()[:4]
        '<svg'
        """
        truth = None if truth is None else as_data(truth)
        return self._core.svg(truth and truth._core, "")

    def __reduce__(self):
        return _from_state, (self._index, *self._core.state())

    def __repr__(self) -> str:
        made = self.summary
        kept = f", {made['kept']} of {made['draws']} draws kept" if made else ""
        calendar, numbers = self._core.calendar, self._core.times
        first, last = (f"t = {numbers[0]:g}", f"{numbers[-1]:g}") if calendar is None else (
            calendar.text(t) for t in (numbers[0], numbers[-1]))
        return f"<odecast.Forecast of {plain(self.variables)}: {first} … {last}{kept}>"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self)[1:-1])}</p>{self.svg()}"


def _from_state(index, *state) -> Forecast:
    """What pickle and copy restore."""
    return Forecast(_core.forecast_from_state(state), index)


def read_forecast(path) -> Forecast:
    """A forecast from the file that :meth:`Forecast.save` or ``odecast forecast`` wrote. See there
    for an example.

    >>> import odecast
    >>> odecast.read_forecast("no such file")
    Traceback (most recent call last):
    OSError: input 'no such file': found no such file, expected a file to read. Check the name.
    """
    return Forecast(_core.read_forecast(os.fspath(path)))


@document(_DRAWS)
def forecast(posterior, init=None, *, variables=None, at=None, samples: int = 5, progress=None,
             **options) -> Forecast:
    """A forecast from any posterior: a :class:`Model`, or draws of right-hand sides of your own,
    for comparison.

    Parameters
    ----------
    posterior : Model, or a callable
        Called with a ``numpy.random.Generator``, keyed by seed and number of the draw, it returns
        one draw: a function of t and u that gives du/dt. An object with such a method ``draw`` will
        do.
    init : array
        The start.
    variables : list of str
        Their names; x1, x2, … by default.
    at, samples, progress
        As for :meth:`Model.forecast`, as are all others.

    %OPTIONS%

    >>> import odecast
    >>> def decay(rng):
    ...     rate = 1 + 0.1 * rng.standard_normal()
    ...     return lambda t, u: -rate * u
    >>> fc = odecast.forecast(decay, [1.0], until=1, step=0.5, draws=20)
    >>> fc.mean.shape
    (3, 1)
    """
    if isinstance(posterior, Model):
        return posterior.forecast(init, at=at, samples=samples, progress=progress, **options)
    check("forecast", _DRAWS, options)
    draw = getattr(posterior, "draw", posterior)
    if not callable(draw):
        raise TypeError(f"forecast() needs a Model or a callable that returns draws, not "
                        f"{type(posterior).__name__}")
    if init is None:
        raise ValueError(
            "init=: found nothing, expected a start. Draws of your own have no last observation.")
    start = contiguous(init)
    names = [f"x{i + 1}" for i in range(start.size)] if variables is None else variables
    keywords = {**options, "init": start}
    if at is not None:
        keywords["at"] = "times"
        at = contiguous(at)
    with watched(progress) as bar:
        core = _core.forecast_draws(lambda seed, index: draw(np.random.default_rng((seed, index))),
                                    names, keywords, at, samples, bar,
                                    spelled_call("odecast.forecast", [], options))
    return finish(core)


@document(_SCORE)
def score(forecast, truth, **options) -> dict:
    """Compares a forecast with what happened: the dictionary that ``odecast score --json`` prints.

    Parameters
    ----------
    forecast : Forecast or path
    truth : Data, or what :func:`read` takes

    %OPTIONS%

    >>> import odecast
    >>> train, test = odecast.simulate("SprottB", until=11, step=0.01).split(holdout=0.1)
    >>> fc = odecast.fit(train).forecast(at=test, draws=50)
    >>> sorted(odecast.score(fc, test))[:4]
    ['band', 'coverage', 'crps', 'from']
    """
    check("score", _SCORE, options)
    if not isinstance(forecast, Forecast):
        forecast = read_forecast(forecast)
    return forecast._core.score(whole(as_data(truth))._core, options)


Forecast.report = document(_PAGE)(Forecast.report)
