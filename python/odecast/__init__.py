"""Learns the equations of a system from observed trajectories and forecasts with error bands.

>>> import odecast
>>> train = odecast.simulate("SprottB", init=[1, 1, 1], until=10, step=0.002)
>>> model = odecast.fit(train)
>>> fc = model.forecast([-1, -1, -1], until=1, step=0.02, draws=200)
>>> fc.mean.shape, fc.lower.shape, fc.times.shape
((51, 3), (51, 3), (51,))

The words are those of the command line ``odecast``, and so are the numbers, to the last bit. Wrong
options and bad data raise ValueError, files that cannot be read or written OSError, both with the
command line's message. A result that is not to be trusted comes with a warning,
:class:`NotTrusted`.
"""

from . import _core
from ._coefficients import Coefficients, Covariance, Draws
from ._data import Data, Trajectory, read, simulate
from ._filter import Filter, Filtered
from ._forecast import Forecast, forecast, read_forecast, score
from ._model import Model, NotTrusted, fit, load
from ._systems import Tuning, attractor, lyapunov, systems, tune

__version__ = _core.version
__all__ = ["Coefficients", "Covariance", "Data", "Draws", "Filter", "Filtered", "Forecast",
           "Model", "NotTrusted", "ODERegressor", "Trajectory", "Tuning", "attractor", "fit",
           "forecast", "load", "lyapunov", "read", "read_forecast", "score", "simulate", "systems",
           "tune"]


def __getattr__(name):
    # scikit-learn takes a second to import: only for those who ask.
    if name == "ODERegressor":
        from ._regressor import ODERegressor

        return ODERegressor
    raise AttributeError(f"module 'odecast' has no attribute {name!r}")


def __dir__():
    return sorted(set(globals()) | set(__all__))
