"""Known systems, exponents, attractors, and settings chosen by held-out data."""

from __future__ import annotations

import os
import tempfile
import warnings
from typing import NamedTuple

from . import _core
from ._data import as_data, is_path, whole
from ._model import Model, NotTrusted, load
from ._options import FILES, READING, check, document, join_terms, table
from ._progress import watched

_LYAPUNOV = table("lyapunov", FILES)
_ATTRACTOR = table("attractor", FILES)
_TUNE = table("tune", FILES)


class Tuning(NamedTuple):
    """What :func:`tune` found: the best model, fitted to all rows, and what ``odecast tune --json``
    prints.

    >>> import odecast
    >>> odecast.Tuning._fields
    ('model', 'summary')
    """

    model: Model
    summary: dict


def _told(result: tuple[dict, str]) -> dict:
    found, complaint = result
    if complaint:
        warnings.warn(complaint, NotTrusted, stacklevel=3)
    return found


def systems(name: str | None = None):
    """The names of the catalogue, or all about one of its systems: equations, parameters, start,
    step, exponent, sources.

    >>> import odecast
    >>> "Lorenz" in odecast.systems()
    True
    >>> odecast.systems("SprottB")["equations"]
    ['dx/dt = y z', 'dy/dt = x - y', 'dz/dt = 1 - x y']
    """
    return _core.system_names() if name is None else _core.system(name)


@document(_LYAPUNOV)
def lyapunov(of, init=None, *, progress=None, **options) -> dict:
    """The Lyapunov exponents, largest first, with standard errors: what ``odecast lyapunov --json``
    prints.

    Parameters
    ----------
    of : Model, path of one, or name of a system
        Of a model: its mean field, and draws of it.
    init : array
        The start; by default the catalogue's, or the last observation.
    progress : bool or callable
        As for :func:`fit`.

    %OPTIONS%

    >>> import odecast
    >>> found = odecast.lyapunov("Lorenz", until=100)
    >>> [round(x) for x in found["exponents"]], found["catalogue"]
    ([1, 0, -15], 0.906)
    """
    check("lyapunov", _LYAPUNOV, options)
    if not isinstance(of, Model) and (os.path.exists(of) or os.fspath(of).endswith(".json")):
        of = load(of)
    core, name = (of._core, "model") if isinstance(of, Model) else (None, os.fspath(of))
    with watched(progress) as bar:
        return _told(_core.lyapunov(core, name, {**options, "init": init}, bar))


@document(_ATTRACTOR)
def attractor(model, data, *, progress=None, **options) -> dict:
    """Long runs of a model against data, where they go and their spectra: what ``odecast attractor
    --json`` prints.

    Parameters
    ----------
    model : Model or path
    data : Data, or what :func:`read` takes
        Its longest trajectory counts.
    progress : bool or callable
        As for :func:`fit`.

    %OPTIONS%

    >>> import odecast
    >>> data = odecast.simulate("Lorenz", until=100, step=0.05)
    >>> model = odecast.fit(data, posterior="regression")
    >>> found = odecast.attractor(model, data, draws=2, pieces=2)
    >>> found["status"], found["model"]["spectrum_distance"] < 0.2
    ('finished', True)
    """
    check("attractor", _ATTRACTOR, options)
    model = load(model) if is_path(model) else model
    truth, keywords = model._truth(data, options)
    with watched(progress) as bar:
        return _told(_core.attractor(model._core, truth, keywords, bar))


@document(_TUNE)
def tune(data, *, output=None, progress=None, **options) -> Tuning:
    """Chooses settings by forecasts of held-out blocks; lists are tried in every combination that
    fits.

    Parameters
    ----------
    data : Data, or what :func:`read` takes
    output : path of a folder
        Keeps the work there: interrupted, the same call goes on, and further settings are added. It
        gets model, table and picture too. By default nothing is kept.
    progress : bool or callable
        As for :func:`fit`.

    %OPTIONS%

    >>> import odecast
    >>> data = odecast.simulate("SprottB", until=20, step=0.05)
    >>> best = odecast.tune(data, posterior="regression", degree=[1, 2], starts=6, draws=20)
    >>> best.summary["rows"][0]["settings"], best.model
    ('--posterior regression', <odecast.Model of x, y, z: 401 rows, posterior>)
    """
    check("tune", _TUNE, options)
    join_terms(options)
    reading = {name: options.pop(name) for name in READING if name in options}
    data = whole(as_data(data, **reading))
    if data.inputs:
        options["inputs"] = data.inputs
        options["time"] = data._core.time_input or None
    with tempfile.TemporaryDirectory() as place, watched(progress) as bar:
        model, summary = _core.tune(data._core, os.fspath(output or place), options, bar)
    return Tuning(Model(model, data._index), summary)
