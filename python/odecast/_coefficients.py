"""The coefficients of a model: what is known of each, and draws of all of them together."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, eq=False)
class Coefficients:
    """Mean, standard deviation and probability of every coefficient over the posterior, in the
    units of the data: what :attr:`Model.coefficients` gives. Arrays are variables × terms, those of
    functions behind the monomials, with powers 0.

    >>> import odecast
    >>> known = odecast.fit(odecast.simulate("SprottB", until=10)).coefficients
    >>> known.terms[:4], known.mean.shape
    (['1', 'x', 'y', 'z'], (3, 10))
    >>> known.mean[1].round(4) + 0
    array([ 0.,  1., -1.,  0.,  0.,  0.,  0.,  0.,  0.,  0.])
    """

    variables: list[str]
    terms: list[str]
    powers: np.ndarray
    mean: np.ndarray
    sd: np.ndarray
    probability: np.ndarray

    def to_dataframe(self):
        """A pandas DataFrame: a row for each coefficient that may differ from zero, indexed by
        variable and term.

        >>> import odecast
        >>> known = odecast.fit(odecast.simulate("SprottB", until=10)).coefficients
        >>> float(known.to_dataframe().loc[("y", "x"), "mean"].round(4))
        1.0
        """
        import pandas

        at = np.argwhere(self.probability > 0)
        names = [(self.variables[i], self.terms[k]) for i, k in at]
        return pandas.DataFrame({name: getattr(self, name)[tuple(at.T)]
                                 for name in ("mean", "sd", "probability")},
                                index=pandas.MultiIndex.from_tuples(names,
                                                                    names=["variable", "term"]))


@dataclass(frozen=True, eq=False)
class Covariance:
    """The coefficients of the most probable set of terms are normal with this mean and covariance,
    in the units of the data: what :attr:`Model.covariance` gives. ``names`` has variable and term
    of each, "" and its name of a number inside functions; as an array it is the ``matrix``.

    >>> import odecast, numpy as np
    >>> noisy = odecast.simulate("SprottB", until=10, noise=0.01)
    >>> found = odecast.fit(noisy).covariance
    >>> ("y", "x") in found.names, np.allclose(found, found.matrix.T)
    (True, True)
    """

    names: list[tuple[str, str]]
    mean: np.ndarray
    matrix: np.ndarray
    probability: float

    def __array__(self, dtype=None, copy=None):
        return np.array(self.matrix, dtype=dtype)

    def to_dataframe(self):
        """A pandas DataFrame with variable and term along both sides.

        >>> import odecast
        >>> noisy = odecast.simulate("SprottB", until=10, noise=0.01)
        >>> odecast.fit(noisy).covariance.to_dataframe().index.names
        FrozenList(['variable', 'term'])
        """
        import pandas

        sides = pandas.MultiIndex.from_tuples(self.names, names=["variable", "term"])
        return pandas.DataFrame(self.matrix, index=sides, columns=sides)


@dataclass(frozen=True, eq=False)
class Draws:
    """Coefficients drawn from the posterior, in the units of the data: what :meth:`Model.draws`
    gives. ``values`` is draws × variables × terms, and so is this as an array; ``start`` (draws ×
    variables) the state in which the data end, drawn with them, or None where the model knows
    nothing of it. ``powers`` of a function are 0; ``numbers`` has those inside functions, NaN in
    draws without them.

    >>> import odecast, numpy as np
    >>> drawn = odecast.fit(odecast.simulate("SprottB", until=10)).draws(50)
    >>> len(drawn), np.asarray(drawn).shape, drawn.variables
    (50, (50, 3, 10), ['x', 'y', 'z'])
    """

    values: np.ndarray
    variables: list[str]
    terms: list[str]
    powers: np.ndarray
    start: np.ndarray | None
    seed: int
    numbers: dict[str, np.ndarray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)

    def to_dict(self) -> dict[str, np.ndarray]:
        """Arrays whose first dimensions are chain (there is one: draws are independent) and draw,
        as ArviZ' ``from_dict`` takes them.

        >>> import odecast
        >>> drawn = odecast.fit(odecast.simulate("SprottB", until=10)).draws(50)
        >>> {name: part.shape for name, part in drawn.to_dict().items()}
        {'coefficients': (1, 50, 3, 10), 'start': (1, 50, 3)}
        """
        parts = {"coefficients": self.values[None]}
        if self.start is not None:
            parts["start"] = self.start[None]
        return parts

    def to_xarray(self):
        """An xarray Dataset with the dimensions chain, draw, variable and term.

        >>> import odecast
        >>> drawn = odecast.fit(odecast.simulate("SprottB", until=10)).draws(50).to_xarray()
        >>> float(drawn.coefficients.sel(variable="y", term="x").mean().round(4))
        1.0
        """
        import xarray

        places = ("chain", "draw", "variable", "term")
        return xarray.Dataset(
            {name: (places[:part.ndim], part) for name, part in self.to_dict().items()},
            coords={"chain": [0], "draw": np.arange(len(self)), "variable": self.variables,
                    "term": self.terms})

    def to_arviz(self):
        """What ArviZ works on, with the draws as its posterior: a DataTree, or InferenceData where
        ArviZ is older than 1.

        >>> import odecast
        >>> odecast.Draws.to_arviz.__name__
        'to_arviz'
        """
        try:
            import arviz
        except ImportError as error:
            raise ImportError("to_arviz() needs ArviZ: pip install arviz; to_dict() and "
                              "to_xarray() do without") from error
        convert = getattr(arviz, "convert_to_datatree", None) or arviz.convert_to_inference_data
        return convert(self.to_xarray())
