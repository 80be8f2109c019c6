"""Ctrl-C stops a long call within a tenth of a second and leaves the interpreter as it was."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import odecast

ROWS = 3_000_000


@pytest.fixture(autouse=True)
def listening():
    """A shell starts what runs in the background with SIGINT ignored, and Python leaves that so."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def much():
    t = np.arange(ROWS) * 1e-3
    return odecast.read(t, np.column_stack([np.sin(t), np.cos(t)]))


def slow_function(rng):
    def f(t, u):
        time.sleep(0.001)
        return -u

    return f


CALLS = {
    "adam": lambda d, m, much: odecast.fit(d, trainer="adam"),
    "network": lambda d, m, much: odecast.fit(d, layers=[32, 32]),
    "exact": lambda d, m, much: odecast.fit(d, starts=100_000),
    "long starts": lambda d, m, much: odecast.fit(d, degree=6, starts=1000),
    "trajectory posterior": lambda d, m, much: [odecast.fit(d, posterior="trajectory", degree=3)
                                                for _ in range(50)],
    "many rows": lambda d, m, much: [odecast.fit(much, dropout=0.25) for _ in range(20)],
    "draws": lambda d, m, much: m.forecast(until=2000, step=1, draws=1_000_000, bands="sd",
                                           attempts=1000),
    "long trajectories": lambda d, m, much: m.forecast(until=1e6, step=1000, draws=1000, bands="sd",
                                                       max_steps=10**9),
    "quantiles": lambda d, m, much: [m.forecast(until=11, step=5e-4, draws=500, observations=True,
                                                noise=0.1) for _ in range(20)],
    "one by one": lambda d, m, much: m.forecast(until=1000, step=1, draws=20_000, method="rk4",
                                                bands="sd"),
    "evaluate": lambda d, m, much: m.evaluate(d, starts=5000, horizon=3, draws=1000),
    "one long start": lambda d, m, much: m.evaluate(d, starts=2, horizon=9, leads=500, draws=1000),
    "function": lambda d, m, much: odecast.forecast(slow_function, [1.0], until=100, step=1,
                                                    draws=100),
    "tune": lambda d, m, much: odecast.tune(d, posterior="dropout", dropout=[0.1, 0.2], starts=1000,
                                            draws=1000),
    "lyapunov": lambda d, m, much: odecast.lyapunov("Lorenz", until=1e6),
    "attractor": lambda d, m, much: odecast.attractor(m, d, pieces=1000),
    "simulate": lambda d, m, much: odecast.simulate("Lorenz", until=20_000, step=0.01),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_interrupt(call, train, model, much):
    """The quickest of three: another program may run beside."""
    before = odecast.fit(train, posterior="regression").equations()
    waits = []

    def send():
        waits.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    while not waits or (waits[-1] > 0.1 and len(waits) < 3):
        timer = threading.Timer(0.3, send)
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            try:
                call(train, model, much)
            finally:
                timer.cancel()
        waits[-1] = time.monotonic() - waits[-1]
    assert min(waits) < 0.1, waits
    assert odecast.fit(train, posterior="regression").equations() == before
