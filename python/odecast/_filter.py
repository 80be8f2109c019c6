"""Following a system with a learnt model, row by row."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np

from . import _core
from ._data import time_word
from ._model import _FILTER, Model, NotTrusted
from ._options import READING, check, document
from ._progress import watched

_ROWS = {name: o for name, o in _FILTER.items() if name not in READING}


def _keywords(options: dict) -> dict:
    return {name: time_word(value) for name, value in options.items()}


class Filtered:
    """What a filter said of every row. Made by :meth:`Model.filter`.

    >>> import odecast
    >>> model = odecast.fit(odecast.simulate("Lorenz", until=10, step=0.02, noise=0.02))
    >>> rows = odecast.simulate("Lorenz", init=[3, 4, 20], until=5, step=0.1, noise=0.02, seed=2)
    >>> filtered = model.filter(rows)
    >>> filtered.mean.shape, filtered.status[-1]
    ((51, 3), 'ok')
    """

    variables: list[str]
    status: list[str]
    summary: dict[str, Any]
    model: Model

    def __init__(self, core, model: Model):
        self._core = core
        self._index = model._index
        head, rows = core.text.split("\n", 1)
        self._names = head.split(",")
        columns = list(zip(*(line.split(",") for line in rows.splitlines())))
        #: Column by column, as the CSV of ``odecast filter`` has them.
        self._columns = dict(zip(self._names, columns))
        #: The dictionary that ``odecast filter --json`` prints.
        self.summary = core.summary
        #: The model from where the rows end, with what was learnt.
        self.model = Model(core.model, model._index)
        self.variables = core.model.variables
        self.status = list(self._columns["status"])

    def _numbers(self, name: str) -> np.ndarray:
        return np.array([float(cell) if cell else np.nan for cell in self._columns[name]])

    def _part(self, part: str) -> np.ndarray:
        return np.column_stack([self._numbers(f"{v}_{part}") for v in self.variables])

    @property
    def mean(self) -> np.ndarray:
        """Mean of the state, rows × variables, given all rows up to each."""
        return self._part("mean")

    @property
    def sd(self) -> np.ndarray:
        """Its standard deviation."""
        return self._part("sd")

    @property
    def lower(self) -> np.ndarray:
        """Lower edge of its band."""
        return self._part("lower")

    @property
    def upper(self) -> np.ndarray:
        """Upper edge of its band."""
        return self._part("upper")

    @property
    def forecast(self) -> np.ndarray:
        """Mean of the state before each row was seen."""
        return self._part("forecast")

    @property
    def surprise(self) -> np.ndarray:
        """Distance of each row from its forecast, 1 is normal; NaN where nothing was seen."""
        return self._numbers("surprise")

    def to_dataframe(self):
        """A pandas DataFrame with the columns of the CSV that ``odecast filter`` writes.

        >>> import odecast
        >>> model = odecast.fit(odecast.simulate("Lorenz", until=10, step=0.02, noise=0.02))
        >>> rows = odecast.simulate("Lorenz", init=[3, 4, 20], until=5, step=0.1, noise=0.02)
        >>> model.filter(rows).to_dataframe().columns[:4].tolist()
        ['t', 'x_mean', 'x_sd', 'x_lower']
        """
        import io

        import pandas

        return pandas.read_csv(io.StringIO(self._core.text))

    def coefficients(self):
        """A pandas DataFrame of every coefficient's mean and sd row by row, with ``learn=True``.

        >>> import odecast
        >>> model = odecast.fit(odecast.simulate("Lorenz", until=10, step=0.02, noise=0.02))
        >>> rows = odecast.simulate("Lorenz", init=[3, 4, 20], until=5, step=0.1, noise=0.02)
        >>> model.filter(rows, learn=True).coefficients().shape[0]
        51
        """
        import io

        import pandas

        return pandas.read_csv(io.StringIO(self._core.coefficients))

    def save(self, path) -> None:
        """Writes the CSV that ``odecast filter`` writes, the same bytes.

        >>> import tempfile, os
        >>> import odecast
        >>> model = odecast.fit(odecast.simulate("Lorenz", until=10, step=0.02, noise=0.02))
        >>> rows = odecast.simulate("Lorenz", init=[3, 4, 20], until=5, step=0.1, noise=0.02)
        >>> with tempfile.TemporaryDirectory() as place:
        ...     model.filter(rows).save(os.path.join(place, "filtered.csv"))
        """
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(self._core.text)

    def __repr__(self) -> str:
        s = self.summary
        return (f"<odecast.Filtered: {s['rows']} rows, {100 * s['coverage']:.1f} % of "
                f"{s['values']} values inside their band one row ahead>")


def filter_rows(model: Model, data, progress, options: dict) -> Filtered:
    with watched(progress) as bar:
        core = _core.filter_data(model._core, data._core, _keywords(options), bar)
    if core.complaint:
        warnings.warn(core.complaint, NotTrusted, stacklevel=3)
    return Filtered(core, model)


class Filter:
    """A filter that is given its rows as they come.

    >>> import odecast
    >>> model = odecast.fit(odecast.simulate("Lorenz", until=10, step=0.02, noise=0.02))
    >>> filter = odecast.Filter(model)
    >>> row = filter.update(0.0, {"x": 3.0, "z": 20.0})
    >>> row["status"], row["used"], row["mean"].shape
    ('ok', 2, (3,))
    """

    observed: list[str]

    @document(_ROWS)
    def __init__(self, model: Model, columns=None, **options):
        """
        Parameters
        ----------
        model : Model
        columns : list of str
            What is observed; by default all variables of the model.

        %OPTIONS%
        """
        check("Filter", _ROWS, options)
        self._model = model
        columns = [*(columns or model.variables), *model._core.measured_inputs]
        self._core = _core.Filter(model._core, columns, _keywords(options))
        #: Names of what is observed, in the order of the values.
        self.observed = self._core.observed

    def update(self, t, y, inputs=()) -> dict:
        """Takes a row: its time, what was observed there (values in the order of ``observed``, NaN
        for none; or a dict of names), and the inputs. Returns mean, sd, lower and upper of the
        state, its forecast before the row was seen, surprise, log score and status.

        >>> import odecast
        >>> model = odecast.fit(odecast.simulate("Lorenz", until=10, step=0.02, noise=0.02))
        >>> odecast.Filter(model).update(0.0, [3.0, 4.0, 20.0])["used"]
        3
        """
        if isinstance(y, dict):
            unknown = set(y) - set(self.observed)
            if unknown:
                raise ValueError(f"y: found {sorted(unknown)[0]!r}, expected names among "
                                 f"{', '.join(self.observed)}. Name what is observed.")
            y = [y.get(name, np.nan) for name in self.observed]
        values = [np.ascontiguousarray(v, dtype=float).reshape(-1) for v in (y, inputs)]
        return self._core.update(float(self._model._numbers([t])[0]), *values)

    def model(self) -> Model:
        """The model from where the rows end, with what was learnt.

        >>> import odecast
        >>> model = odecast.fit(odecast.simulate("Lorenz", until=10, step=0.02, noise=0.02))
        >>> filter = odecast.Filter(model, learn=True)
        >>> row = filter.update(100.0, [3.0, 4.0, 20.0])
        >>> float(filter.model().forecast(until=101).times[0])
        100.0
        """
        return Model(self._core.after(), self._model._index)

    def forecast(self, **options) -> Forecast:
        """From where the rows end: :meth:`Model.forecast`.

        >>> import odecast
        >>> model = odecast.fit(odecast.simulate("Lorenz", until=10, step=0.02, noise=0.02))
        >>> filter = odecast.Filter(model)
        >>> row = filter.update(100.0, [3.0, 4.0, 20.0])
        >>> filter.forecast(until=101, step=0.5, draws=100).mean.shape
        (3, 3)
        """
        return self.model().forecast(**options)

    @property
    def members(self) -> np.ndarray:
        """The states that are followed, members × variables."""
        return self._core.members

    @property
    def summary(self) -> dict:
        """What ``odecast filter --json`` prints, of the rows so far."""
        return self._core.summary

    def save(self, path) -> None:
        """Writes where the filter is.

        >>> import tempfile, os
        >>> import odecast
        >>> model = odecast.fit(odecast.simulate("Lorenz", until=10, step=0.02, noise=0.02))
        >>> filter = odecast.Filter(model)
        >>> row = filter.update(0.0, [3.0, 4.0, 20.0])
        >>> with tempfile.TemporaryDirectory() as place:
        ...     filter.save(os.path.join(place, "state.json"))
        ...     again = odecast.Filter.load(os.path.join(place, "state.json"), model)
        """
        self._core.save(os.fspath(path))

    @classmethod
    @document(_ROWS)
    def load(cls, path, model: Model, columns=None, **options) -> Filter:
        """A filter that goes on from a file of :meth:`save`, with the same model, columns and
        options, and with the same bits."""
        filter = cls(model, columns, **options)
        filter._core.load(os.fspath(path))
        return filter
