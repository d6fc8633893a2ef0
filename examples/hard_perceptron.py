"""Separable rows on which the perceptron needs exponentially many updates, and a linear program a moment.

The bound (RB)^2 on the updates of the perceptron (docs/theory.md#batch-perceptron) can be exponential in the dimension
d, and so can the updates: here are 2d rows of -1, 0 and 1 whose only separators have weights that double from one
coordinate to the next, whatever the order of the rows.

Run ``python examples/hard_perceptron.py [FOLDER]``; it draws hard_perceptron.png there.
"""

from time import perf_counter

from hindsight import charts
from hindsight.batch.perceptron import hard_halfspace
from hindsight.batch.separability import separate
from hindsight.estimators.perceptron import BatchPerceptronClassifier

DIMENSIONS = range(1, 12)


def main(path: str) -> None:
    """Print the table, and draw it where altair is installed."""
    heads = ("d", 3), ("rows", 5), ("updates", 10), ("at least", 10), ("(RB)²", 12), ("loop", 12), ("program", 12)
    print(" ".join(f"{name:>{width}}" for name, width in heads))
    BatchPerceptronClassifier().fit(*hard_halfspace(2))  # compiled before the clock runs
    separate(*hard_halfspace(2))
    table = []
    for d in DIMENSIONS:
        X, y = hard_halfspace(d)
        model = BatchPerceptronClassifier(None, max_updates=10**8, fit_intercept=False)
        began = perf_counter()
        model.fit(X, y)
        loop = perf_counter() - began
        began = perf_counter()
        found = separate(X, y, fit_intercept=False)
        program = perf_counter() - began
        assert model.converged_
        assert found.separable
        bound = model.certify(X, y).bound
        table.append({"d": d, "updates": model.n_updates_, "bound": bound, "perceptron": loop, "program": program})
        print(
            f"{d:3} {len(y):5} {model.n_updates_:10,} {(4**d - 1) // 3:10,} {bound:12,.0f}"
            f" {1e3 * loop:9.2f} ms {1e3 * program:9.2f} ms"
        )
    draw(table, path)


def draw(table: list[dict[str, float]], path: str) -> None:
    """Updates and their bound against d."""
    try:
        alt = charts.altair()
    except ValueError as error:
        print(f"no chart: {error}")
        return
    lines = {"updates": "updates made", "bound": "(RB)², the most there can be"}
    values = [{"d": row["d"], "updates": row[key], "line": name} for row in table for key, name in lines.items()]
    chart = (
        alt.Chart(alt.Data(values=values), title="Updates until the rows are separated", width=480, height=300)
        .mark_line(point=True)
        .encode(
            alt.X("d:Q", title="dimension d", axis=alt.Axis(tickMinStep=1)),
            alt.Y(
                "updates:Q",
                title="updates (logarithmic)",
                scale=alt.Scale(type="log"),
                axis=alt.Axis(values=[10**k for k in range(9)], format=",d"),
            ),
            alt.Color("line:N", title=None, legend=alt.Legend(orient="top-left")),
        )
    )
    charts.save(charts.styled(chart), path)
    print(f"chart: {path}")


if __name__ == "__main__":
    from pictures import folder

    main(str(folder() / "hard_perceptron.png"))
