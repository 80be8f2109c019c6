"""An estimator for scikit-learn. Imported only when asked for."""

from __future__ import annotations

import numpy as np

try:
    from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
    from sklearn.metrics import r2_score
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise ImportError(
        "odecast.ODERegressor needs scikit-learn 1.6 or later: pip install scikit-learn") from error

from ._data import Data, _array_list, read
from ._model import _FIT, fit
from ._options import default

_DEFAULTS = {name: default(o) for name, o in _FIT.items()}


class ODERegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """The right-hand side of an ordinary differential equation as a scikit-learn regressor.

    ``fit(X, t=times)`` learns du/dt = f(u) from a trajectory, rows of X being states, as
    :func:`odecast.fit` does; ``fit(X, y)`` learns it from derivatives that are known, by least
    squares unless a ``posterior`` or ``dropout`` is given: y holds those of the first columns of X,
    the other columns drive the system. Parameters are the keywords of :func:`odecast.fit`;
    ``sample_step`` is the spacing of the rows where no times are given.

    Cross-validation of a trajectory must keep neighbours together: ``cv=TimeSeriesSplit()``.

    >>> import odecast
    >>> run = odecast.simulate("SprottB", init=[1, 1, 1], until=10, step=0.01)[0]
    >>> model = odecast.ODERegressor().fit(run.states, t=run.times)
    >>> model.predict([[1, 2, 3]]).round(4)
    array([[ 6., -1., -1.]])
    >>> round(model.score(run.states, t=run.times), 4)
    1.0
    """

    def __init__(self, degree=2, hidden="auto", dropout=None, rescale=False, scale="standard",
                 kind="flow", derivative=None, noise=None, gap=None, terms=None, layers=None,
                 activation="tanh", trainer="auto", starts=8, max_iterations=10000,
                 sample_step=None, seed=1, threads="all", posterior="auto", robust=False,
                 functions=None, candidates=None):
        self.degree = degree
        self.hidden = hidden
        self.dropout = dropout
        self.rescale = rescale
        self.scale = scale
        self.kind = kind
        self.derivative = derivative
        self.noise = noise
        self.gap = gap
        self.terms = terms
        self.layers = layers
        self.activation = activation
        self.trainer = trainer
        self.starts = starts
        self.max_iterations = max_iterations
        self.sample_step = sample_step
        self.seed = seed
        self.threads = threads
        self.posterior = posterior
        self.robust = robust
        self.functions = functions
        self.candidates = candidates

    def fit(self, X, y=None, t=None):
        """Learns from a trajectory (t: times, or a list of them beside a list of arrays) or from
        derivatives (y).

        >>> import odecast, numpy as np
        >>> X = np.random.default_rng(0).normal(size=(50, 2))
        >>> odecast.ODERegressor().fit(X, X @ [[0, -1], [1, 0]]).predict([[1, 0]]).round(6) + 0
        array([[ 0., -1.]])
        """
        options = {name: value for name, value in self.get_params().items()
                   if name != "sample_step" and not _same(value, _DEFAULTS[name])}
        if y is not None:
            if t is not None:
                raise ValueError(
                    "fit: found y and t, expected one of them. Give times or derivatives.")
            data = self._pairs(X, y)
            options.pop("derivative", None)
            if self.posterior == "auto" and self.dropout is None:
                options["dropout"] = 0
        else:
            data = self._trajectories(X, t, fitting=True)
            self._columns, self._flat = None, False
        self.model_ = fit(data, progress=False, **options)
        return self

    def predict(self, X):
        """The right-hand side f at the rows of X: the mean over the draws.

        >>> import odecast
        >>> run = odecast.simulate("SprottB", until=10)[0]
        >>> odecast.ODERegressor().fit(run.states, t=run.times).predict(run.states[:2]).shape
        (2, 3)
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64, order="C")
        result = self.model_.predict(X)
        return result[:, 0] if self._flat else result

    def simulate(self, x0, t):
        """The trajectory of the mean field from x0 at the times t, of which the first is that of
        x0.

        >>> import odecast, numpy as np
        >>> run = odecast.simulate("SprottB", init=[1, 1, 1], until=10, step=0.01)[0]
        >>> model = odecast.ODERegressor().fit(run.states, t=run.times)
        >>> errors = model.simulate(run.states[0], run.times[:100]) - run.states[:100]
        >>> bool(abs(errors).max() < 1e-2)
        True
        """
        check_is_fitted(self)
        t = np.asarray(t, dtype=np.float64)
        return self.model_.forecast(x0, from_=float(t[0]), at=t[1:], field="mean")[0].states

    def forecast(self, init=None, **options):
        """As :meth:`odecast.Model.forecast`.

        >>> import odecast
        >>> run = odecast.simulate("SprottB", until=10)[0]
        >>> model = odecast.ODERegressor().fit(run.states, t=run.times)
        >>> model.forecast(until=11, step=0.5, draws=20).mean.shape
        (3, 3)
        """
        check_is_fitted(self)
        return self.model_.forecast(init, **options)

    def score(self, X, y=None, t=None, sample_weight=None):
        """R² of :meth:`predict`: against y, or against derivatives taken from the trajectory (for a
        map: the next rows).

        >>> import odecast
        >>> run = odecast.simulate("SprottB", until=10, step=0.01)[0]
        >>> model = odecast.ODERegressor(sample_step=0.01).fit(run.states)
        >>> model.score(run.states) > 0.99
        True
        """
        if y is not None:
            return super().score(X, y, sample_weight)
        check_is_fitted(self)
        data = self._trajectories(X, t)
        if self.kind == "map":
            runs = [run.states for run in data]
            before, after = np.vstack([u[:-1] for u in runs]), np.vstack([u[1:] for u in runs])
        else:
            method = "central4" if self.derivative in (None, "weak", "auto") else self.derivative
            before, after = data._core.derivatives(method)
        return r2_score(after, self.model_.predict(before))

    def _trajectories(self, X, t, fitting=False) -> Data:
        if t is None and self.sample_step is None:
            raise ValueError("fit: found neither y nor t, expected derivatives or times. Give t, "
                             "or sample_step to the estimator. (requires y to be passed, but the "
                             "target y is None)")
        arrays = _array_list(X) if isinstance(X, (list, tuple)) else None
        if arrays is None:
            X = validate_data(self, X, reset=fitting, dtype=np.float64, order="C")
        elif fitting:
            self.n_features_in_ = arrays[0].shape[-1]
        names = getattr(self, "feature_names_in_", None)
        return read(self.sample_step if t is None else t, X if arrays is None else arrays,
                    variables=None if names is None else list(names))

    def _pairs(self, X, y) -> Data:
        """Derivatives at states as trajectories of two rows, u and u + y a time unit later."""
        X, y = validate_data(self, X, y, dtype=np.float64, order="C", multi_output=True,
                             y_numeric=True)
        y = y.astype(np.float64)
        self._flat = y.ndim == 1
        y = y.reshape(len(y), -1)
        self._columns = y.shape[1]
        if self._columns > X.shape[1]:
            raise ValueError(f"fit: found {self._columns} derivatives of {X.shape[1]} columns, "
                             "expected at most as many. The first columns of X are the state.")
        later = X.copy()
        later[:, : self._columns] += y
        pairs = np.stack([X, later], axis=1)  # rows × 2 × columns
        states, drive = np.split(pairs, [self._columns], axis=2)
        parts = [list(map(np.ascontiguousarray, p)) for p in (states, drive) if p.shape[2]]
        return read(1.0, *parts)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        tags.regressor_tags.poor_score = True  # dropout shrinks the mean field
        return tags


def _same(a, b) -> bool:
    return type(a) is type(b) and a == b or (np.isscalar(a) and np.isscalar(b) and a == b)
