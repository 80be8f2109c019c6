"""Observations: from files, arrays and data frames, and made from known systems."""

from __future__ import annotations

import datetime
import html
import io
import os
from typing import NamedTuple

import numpy as np

from . import _core
from ._options import FILES, READING, Part, check, document, table
from ._progress import watched
from ._tables import as_frame, read_table, reader_of

_FIT = table("fit")
_READ = {name: _FIT[name] for name in READING}
_SIMULATE = table("simulate", FILES)
_SPLIT = table("split", FILES | {"train", "test", *READING})


class Trajectory(NamedTuple):
    """One run of a system: its id, times, states and inputs, a row per time.

    >>> import odecast
    >>> odecast.simulate("SprottB", until=1, step=0.5)[0].states.shape
    (3, 3)
    """

    id: str
    times: np.ndarray
    states: np.ndarray
    inputs: np.ndarray


def real(array, what: str = "data"):
    """The array, unless its numbers are complex: a cast would drop half of them."""
    if getattr(getattr(array, "dtype", None), "kind", "") == "c":
        raise TypeError(f"{what}: found complex numbers, expected real ones. Give their real and "
                        "imaginary parts as two columns.")
    return array


def _moments(times):
    """Seconds since 1970 and nanoseconds of dates, each as whole numbers, and whether they have a
    zone; None for anything that is no date. Dates are datetime64 of any resolution, datetimes,
    pandas' stamps and indices."""
    zone = getattr(times, "tz", None) or getattr(getattr(times, "dt", None), "tz", None)
    if zone is not None:
        import pandas

        times = pandas.DatetimeIndex(times).tz_convert("UTC").tz_localize(None)
    if hasattr(getattr(times, "dtype", None), "freq"):  # periods, of a column or an index
        times = getattr(times, "dt", times).to_timestamp()
    array = np.asarray(times)
    if array.dtype.kind == "O" and array.size and isinstance(array.flat[0], datetime.date):
        zones = [getattr(t, "tzinfo", None) is not None for t in array.flat]
        if any(zones) != all(zones):
            raise ValueError("data: found times with a zone and times without one, expected one "
                             "kind. Give all of them a zone, or none.")
        zone = any(zones) or None
        array = np.array([np.datetime64(t.astimezone(datetime.timezone.utc).replace(tzinfo=None)
                                        if zone else t) for t in array.flat]).reshape(array.shape)
    if array.dtype.kind != "M":
        return None
    if np.isnat(array).any():
        raise ValueError("data: found NaT, which is no time, expected a time for every row. Leave "
                         "such rows out.")
    per_second = {"ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}.get(
        np.datetime_data(array.dtype)[0], 1)
    counts = array.astype("datetime64[s]" if per_second == 1 else array.dtype).astype(np.int64)
    seconds, part = np.divmod(counts, per_second)
    return (seconds.astype(np.float64), (part * (1_000_000_000 // per_second)).astype(np.float64),
            zone is not None)


def counted(times, options: dict, calendar=None):
    """Times as a list of arrays of numbers, and what they count: None for numbers. Dates are
    counted as `calendar` does, or in the unit that their spacing or the options choose."""
    several = (isinstance(times, (list, tuple)) and len(times) > 0
               and all(hasattr(t, "__array__") and np.ndim(t) > 0 for t in times))
    moments = [_moments(t) for t in (times if several else [times])]
    if any(m is None for m in moments):
        return _array_list(times) or [contiguous(times)], None
    if len({zoned for _, _, zoned in moments}) > 1:
        raise ValueError("data: found times with a zone and times without one, expected one kind. "
                         "Give all of them a zone, or none.")
    given = {k: v for k, v in options.items() if k in ("time_unit", "time_format")}
    found, numbers = _core.count_times([m[0] for m in moments], [m[1] for m in moments],
                                       moments[0][2], given, calendar)
    return numbers, found


def dates(calendar, times):
    """Numbers as datetime64, in UTC where the calendar has a zone; as they are without one."""
    if calendar is None:
        return times
    seconds, nanoseconds = _core.moments_of(calendar, contiguous(times))
    per = 1 if (nanoseconds % 1000).any() else 1000  # microseconds, unless that loses digits
    unit = "ns" if per == 1 else "us"
    counts = seconds.astype(np.int64) * (1_000_000_000 // per) + nanoseconds.astype(np.int64) // per
    return counts.view(f"datetime64[{unit}]")


def date_index(calendar, times, name: str):
    """The same as a DatetimeIndex, in the zone of the data."""
    import pandas

    index = pandas.DatetimeIndex(dates(calendar, times), name=name)
    if calendar.offset is None:
        return index
    zone = datetime.timezone(datetime.timedelta(minutes=calendar.offset))
    return index.tz_localize("UTC").tz_convert(zone)


def time_word(value):
    """A date as the command line has it; anything else as it is."""
    if isinstance(value, np.datetime64):
        return str(np.datetime_as_string(value))
    return str(value) if isinstance(value, datetime.date) else value


def plain(names) -> str:
    """Names for a terminal, which must not obey them."""
    return ", ".join("".join(c if c.isprintable() else "?" for c in name) for name in names)


def contiguous(array) -> np.ndarray:
    """The array itself where it is C-contiguous float64, else a copy that is. What is masked
    becomes NaN."""
    real(array)
    if getattr(getattr(array, "dtype", None), "kind", "") in ("m", "M"):
        raise TypeError("data: found dates, expected numbers. Give dates as the times alone, apart "
                        "from the values, or as a column of a DataFrame.")
    if isinstance(array, np.ma.MaskedArray):
        array = array.astype(np.float64).filled(np.nan)
    try:
        return np.asarray(array, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        if "complex" in str(error):
            real(np.asarray(array))
        raise ValueError(f"data: found {type(array).__name__} ({error}), expected numbers. Give "
                         "arrays of one shape each, a list of arrays for several trajectories."
                         ) from None


def is_path(source) -> bool:
    return isinstance(source, (str, os.PathLike))


def is_frame(source) -> bool:
    """A pandas DataFrame, or an xarray DataArray or Dataset, which becomes one."""
    return (hasattr(source, "columns") and hasattr(source, "to_numpy")
            or type(source).__module__.partition(".")[0] == "xarray")


def _array_list(arrays) -> list | None:
    """A list of trajectories, where that is what it is."""
    if isinstance(arrays, (list, tuple)) and arrays and all(
            hasattr(a, "__array__") and np.ndim(a) > 0 for a in arrays):
        return [contiguous(a) for a in arrays]
    return None


class Data:
    """Observations of a system: one or several trajectories. Made by :func:`read` and
    :func:`simulate`.

    >>> import odecast, numpy as np
    >>> t = np.linspace(0, 6, 601)
    >>> data = odecast.read(t, np.column_stack([np.cos(t), -np.sin(t)]), variables=["x", "v"])
    >>> data
    <odecast.Data: 601 rows of x, v>
    >>> data[0].times.shape
    (601,)
    """

    def __init__(self, core, index=None):
        self._core = core
        self._index = index  # the name of the times where they were the index of a DataFrame

    variables = Part("list[str]", "Names of the variables.")
    inputs = Part("list[str]", "Names of what drives the system.")
    rows = Part("int", "Number of rows in all trajectories.")
    ids = Part("list[str]", "Ids of the trajectories; empty text where there is only one.")
    certified_until = Part("float | None", "Of simulated data: the time after which they are not "
                                           "the true solution any more.")

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, which) -> Trajectory:
        """The trajectory with that number or id; its arrays are copies."""
        k = self._core.find(which) if isinstance(which, str) else range(len(self))[which]
        return Trajectory(self.ids[k], dates(self._core.calendar, self._core.times(k)),
                          self._core.states(k), self._core.input_values(k))

    def split(self, **options) -> tuple[Data, Data]:
        """The early part of every trajectory and the late part, to fit and to test.

        %OPTIONS%

        >>> import odecast
        >>> train, test = odecast.simulate("SprottB", until=10, step=0.1).split(holdout=0.2)
        >>> train.rows, test.rows
        (81, 20)
        """
        check("split", _SPLIT, options)
        early, late = self._core.split(options)
        return Data(early, self._index), Data(late, self._index)

    def save(self, path) -> None:
        """Writes CSV, or NumPy arrays where the name ends in .npy or .npz.

        >>> import odecast, tempfile, os
        >>> data = odecast.simulate("SprottB", until=1, step=0.5)
        >>> with tempfile.TemporaryDirectory() as place:
        ...     data.save(os.path.join(place, "data.csv"))
        ...     odecast.read(os.path.join(place, "data.csv")).rows
        3
        """
        self._core.write(os.fspath(path))

    def to_dataframe(self):
        """A pandas DataFrame: time, variables, inputs, and the trajectory's id where there are
        several. The time is its index where it was that of the DataFrame that was read.

        >>> import odecast
        >>> odecast.simulate("SprottB", until=1, step=0.5).to_dataframe().columns.tolist()
        ['t', 'x', 'y', 'z']
        """
        import pandas

        frames = []
        for run in self:
            frame = pandas.DataFrame({self._core.time_column: run.times})
            if len(self) > 1:
                frame.insert(0, self._core.id_column, run.id)
            frame[self.variables] = run.states
            if run.inputs.size:
                frame[self.inputs[: run.inputs.shape[1]]] = run.inputs
            frames.append(frame)
        whole = pandas.concat(frames, ignore_index=True)
        if self._index is None:
            return whole
        return whole.set_index(self._core.time_column).rename_axis(self._index or None)

    def inspect(self) -> dict:
        """What one pass over the rows tells: sampling, gaps, range, mean, spread and noise of every
        variable.

        >>> import odecast
        >>> facts = odecast.simulate("SprottB", until=10, step=0.01).inspect()
        >>> facts["rows"], facts["even"], facts["gaps"]
        (1001, True, 0)
        """
        return self._core.inspect()

    def __reduce__(self):
        return _from_state, (self._index, *self._core.state())

    def __repr__(self) -> str:
        several = f" in {len(self)} trajectories" if len(self) > 1 else ""
        driven = f", driven by {plain(self.inputs)}" if self.inputs else ""
        return f"<odecast.Data: {self.rows} rows{several} of {plain(self.variables)}{driven}>"

    def _repr_html_(self) -> str:
        facts = self.inspect()
        lines = "".join(
            f"<tr><th>{html.escape(name)}</th>"
            + "".join(f"<td>{facts[key][i]:.4g}</td>"
                      for key in ("smallest", "mean", "largest", "sd", "noise")) + "</tr>"
            for i, name in enumerate(self.variables))
        gaps = f", {facts['gaps']} gaps" if facts["gaps"] else ""
        calendar = self._core.calendar
        first, last = (f"t = {facts['first_time']:.6g}", f"{facts['last_time']:.6g}") \
            if calendar is None else (calendar.text(facts[k]) for k in ("first_time", "last_time"))
        unit = "" if calendar is None else f" {calendar.unit}"
        return (f"<p>{html.escape(repr(self)[1:-1])}, {first} … {last}, "
                f"step {facts['step']:.4g}{unit}{gaps}</p><table><tr><th></th>"
                "<th>smallest</th><th>mean</th><th>largest</th><th>sd</th><th>noise</th></tr>"
                f"{lines}</table>{self._core.svg()}")


def _from_state(index, *state) -> Data:
    """What pickle and copy restore."""
    return Data(_core.data_from_state(state), index)


@document(_READ)
def read(source, states=None, drive=None, **options) -> Data:
    """Observations from files, arrays or a data frame.

    Parameters
    ----------
    source : path or list of paths
        CSV in any dialect, .npy or .npz, gzipped or not; .parquet, .nc or .h5 by pandas and
        pyarrow, xarray, h5py where they are installed. Several files are several trajectories.
    source : pandas.DataFrame, xarray.Dataset or xarray.DataArray
        A column of times (``t`` or ``time``, or one of dates) or an index of them, a column per
        variable, and
        perhaps ``trajectory``.
    source, states : arrays
        Times, as numbers or dates (datetime64 of any resolution, datetimes, a DatetimeIndex), and
        a row of variables for each. Lists of arrays are several trajectories; one array
        of times serves all. A number instead of times is their spacing. C-contiguous float64 arrays
        are not copied: they must not change while the data are in use.
    source : array
        Rows whose first column is the time, or without times where ``sample_step`` is given;
        trajectories × rows × columns for several trajectories.
    drive : array, or a list of them
        Beside arrays of states: the inputs that drive the system, named by ``inputs``.

    %OPTIONS%

    >>> import odecast, numpy as np
    >>> t = np.linspace(0, 10, 1001)
    >>> odecast.read(t, np.column_stack([np.sin(t), np.cos(t)]), variables=["x", "y"])
    <odecast.Data: 1001 rows of x, y>
    >>> odecast.read([t, t], [np.sin(t), np.cos(t)])
    <odecast.Data: 2002 rows in 2 trajectories of x1>
    """
    check("read", _READ, options)
    if states is None and drive is None:
        if is_path(source):
            source = [source]
        if isinstance(source, (list, tuple)) and source and all(is_path(s) for s in source):
            paths = [os.fspath(s) for s in source]
            if not any(map(reader_of, paths)):
                return Data(_core.read_files(paths, options))
            return _from_frame(_joined(paths, options), paths[0], options)
        if is_frame(source):
            return _from_frame(source, type(source).__name__, options)
        arrays = _array_list(source) or [contiguous(source)]
        return Data(_core.from_arrays(None, arrays, None, options, "data"))
    if states is None:
        raise TypeError("read() with drive needs states")
    if is_frame(states):
        options.setdefault("variables", [str(c) for c in states.columns])
        states = states.to_numpy()
    arrays = _array_list(states) or [contiguous(states)]
    if isinstance(source, (int, float)):
        times = calendar = None
        options["sample_step"] = source
    else:
        times, calendar = counted(source, options)
        if len(times) == 1:
            times *= len(arrays)
        if len(times) != len(arrays):
            raise ValueError(f"data: found {len(times)} arrays of times and {len(arrays)} of "
                             "states, expected as many. Give each trajectory its times.")
    if drive is not None:
        drive = _array_list(drive) or [contiguous(drive)]
        if len(drive) != len(arrays):
            raise ValueError(f"data: found {len(drive)} arrays of inputs and {len(arrays)} of "
                             "states, expected as many. Give each trajectory its inputs.")
    return Data(_core.from_arrays(times, arrays, drive, options, "data", calendar))


def _joined(paths: list[str], options: dict):
    """The tables of the files below each other, each a trajectory of its own."""
    if not all(map(reader_of, paths)):
        raise ValueError(f"input {paths[0]!r}: found it beside files of another kind, expected one "
                         "kind. Read them with pandas and give one DataFrame.")
    frames = [as_frame(read_table(path)) for path in paths]
    if len(frames) == 1:
        return frames[0]
    import pandas

    return pandas.concat([_with_times(frame, options)[0].assign(trajectory=k + 1)
                          for k, frame in enumerate(frames)], ignore_index=True)


def _from_frame(source, name: str, options: dict) -> Data:
    frame, index = _with_times(as_frame(source), options)
    return Data(_core.read_bytes(_frame_bytes(frame), name, options), index)


def _with_times(frame, options: dict):
    """The DataFrame with an index of times as a column, and the name of that index, "" where it has
    none; None where the index is something else. Sets ``time`` where only it can be meant."""
    index = frame.index
    if index.nlevels > 1:
        return frame.reset_index(), None
    names = [str(c) for c in frame.columns]
    wanted = options.get("time")
    timed = wanted in names if wanted else any(n in ("t", "time", "T", "Time") for n in names)
    counts = type(index).__name__ == "RangeIndex"
    dated = _has_dates(index)
    if timed or (index.dtype.kind not in "iuf" and not dated) or (counts and index.name is None):
        return (frame if index.name is None else frame.reset_index()), None
    column = wanted or (str(index.name) if index.name is not None else "time" if dated else "t")
    if column not in names:
        options["time"] = column
    return (frame.rename_axis(column).reset_index(),
            str(index.name) if index.name is not None else "")


def _frame_bytes(frame) -> bytes:
    """The columns as an .npz archive, or with dates as CSV, which C++ reads with all its checks."""
    import zipfile

    if any(_has_dates(frame[name]) for name in frame.columns):
        return frame.to_csv(index=False).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in frame.columns:
            column = real(frame[name].to_numpy(), f"column {name}")
            if column.dtype.kind not in "biuf":
                try:
                    column = frame[name].to_numpy(dtype=np.float64, na_value=np.nan)
                except (TypeError, ValueError):
                    column = column.astype(str)
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.ascontiguousarray(column), allow_pickle=False)
    return buffer.getvalue()


def _has_dates(column) -> bool:
    """Whether a column or an index of a frame has dates, as such or as text."""
    kind = getattr(column.dtype, "kind", "")
    if kind in "biufc":
        return False
    if kind == "M" or hasattr(column.dtype, "freq"):
        return True
    first = next((v for v in column if v == v and v is not None), None)
    return isinstance(first, datetime.date) or (isinstance(first, str) and _core.is_date(first))


def as_data(source, **options) -> Data:
    """Whatever read() takes as one argument, or a pair (t, u)."""
    if isinstance(source, Data):
        given = [name for name, value in options.items() if value is not None]
        if given:
            raise ValueError(f"{given[0]}=: found it beside data that are read already, "
                             "expected it where they are read. Give it to odecast.read.")
        return source
    if isinstance(source, tuple) and len(source) in (2, 3) and not all(is_path(s) for s in source):
        return read(*source, **options)
    return read(source, **options)


def whole(data: Data) -> Data:
    """The data, if nothing may be missing in them."""
    if data._core.keeps_missing:
        raise ValueError("data: found missing values that were kept, expected whole rows. Read "
                         "them with missing='drop'.")
    return data


@document(_SIMULATE)
def simulate(system: str, *, progress=None, **options) -> Data:
    """Data from a known system, integrated at two tight tolerances; until when the two agree is
    certified.

    Parameters
    ----------
    system : str
        Its name in the catalogue, in any case, such as ``"Lorenz"``.

    %OPTIONS%

    >>> import odecast
    >>> odecast.simulate("Lorenz", until=1, step=0.01, set={"rho": 24})
    <odecast.Data: 101 rows of x, y, z>
    """
    check("simulate", _SIMULATE, options)
    with watched(progress) as bar:
        return Data(_core.simulate(system, options, bar))


Data.split = document(_SPLIT)(Data.split)
