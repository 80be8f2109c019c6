# %% [markdown]
# # Your own CSV
#
# A table with a column of times and one per variable. Here one is made, with noise, gaps and a
# decimal comma, as
# measuring programs write them; put the name of yours in its place.

# %%
import odecast

rows = odecast.simulate("Lorenz", until=12, step=0.01, noise=0.001, seed=7)[0]
with open("my.csv", "w") as file:
    print("time;x;y;z", file=file)
    for t, (x, y, z) in zip(rows.times, rows.states):
        if not 5 < t < 5.5:
            print(f"{t:.6g};{x:.8g};{y:.8g};{z:.8g}".replace(".", ","), file=file)

# %% [markdown]
# ## What is understood of it

# %%
data = odecast.read("my.csv")
facts = data.inspect()
print(data, "step", facts["step"], "gaps", facts["gaps"], "noise", facts["noise"])
assert facts["gaps"] == 1

# %% [markdown]
# ## Hold out the end, learn from the rest
# The default method keeps the terms that the data support, and says how sure it is of them.

# %%
train, test = data.split(holdout=0.1)
model = odecast.fit(train)
print("noise", model.summary["noise"])
print(model.equations())

# %% [markdown]
# ## Forecast the part that was held out, and score it
# Without a start the forecast continues from the last observation, with what is known of that state
# and of the coefficients.

# %%
fc = model.forecast(at=test, draws=500, observations=True)
print(odecast.score(fc, test, system="Lorenz")["vpt"])
fc.plot(test, history=train)
fc.save("forecast.csv")
model.save("model.json")
fc.report("my.html", truth=test, title="My data")

# %% [markdown]
# ## As tables

# %%
try:
    print(fc.to_dataframe().tail(3))
    print(fc.to_xarray())
except ImportError as missing:
    print("for tables:", missing)
