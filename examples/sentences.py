"""Was it "I sat on a chair" or "I fat on a chair"? (N0): an n-gram model hears the difference.

Run ``python examples/sentences.py [sentences.html]``; the suffix .html, .png or .svg says what is written. The text is
made by the grammar below, so that nothing has to be fetched; every word is predicted before it is learnt.
"""

from __future__ import annotations

import sys

import altair as alt
import numpy as np

from hindsight import charts
from hindsight.density import NGram

WHO = ["I", "he", "she", "the man", "the cat", "the fat cat", "the fat man", "my sister", "the dog", "a fat dog"]
DID = ["sat", "slept", "stood", "fell asleep", "read a book", "waited"]
WHERE = ["on a chair", "on the sofa", "on the mat", "in the garden", "by the door", "on a big chair", "at home"]
WHEN = ["", "", "", "today", "yesterday", "in the morning", "after dinner"]
PAIRS = [
    ("I sat on a chair", "I fat on a chair"),
    ("the fat cat slept at home", "the sat cat slept at home"),
    ("he read a book today", "he red a book today"),
    ("she stood by the door", "she stood buy the door"),
]


def text(sentences: int, rng: np.random.Generator) -> list[str]:
    """Sentences of the little grammar."""
    return [" ".join(rng.choice(part) for part in (WHO, DID, WHERE, WHEN)).strip() for _ in range(sentences)]


def main(path: str = "sentences.html") -> None:
    """Learn, choose between sentences, and draw."""
    told = [str(__doc__).splitlines()[0], ""]
    sentences = text(2000, np.random.default_rng(0))
    curve, models = [], {}
    for order in (1, 2, 3):
        model = models[order] = NGram(order)
        words = np.cumsum([len(s.split()) + 1 for s in sentences])
        bits = -np.cumsum(model.progressive(sentences)) / np.log(2)
        for k in np.unique(np.geomspace(1, len(sentences), 60).astype(int)) - 1:
            curve.append(
                {
                    "sentences": int(k + 1),
                    "bits": float(bits[k] / words[k]),
                    "order": ("single words", "pairs", "triples")[order - 1],
                }
            )
        told.append(
            f"order {order}: {model.loss / np.log(2) / model.tokens:.3f} bits a word, each before it was learnt"
        )
    model = models[3]
    for heard in PAIRS:
        scores = model.logpmf(heard)
        likely, other = heard[int(scores.argmax())], heard[int(scores.argmin())]
        told.append(f"{likely!r} rather than {other!r}: e^{abs(scores[0] - scores[1]):.1f} times as likely")

    bars = []
    for sentence in PAIRS[0]:
        for k, (word, p) in enumerate(model.explain(sentence)):
            bars.append(
                {
                    "sentence": f"“{sentence}”  {-model.logpmf([sentence])[0] / np.log(2):.1f} bits",
                    "place": k,
                    "word": word.replace("</s>", "(end)"),
                    "bits": -p / np.log(2),
                }
            )
    words = (
        alt.Chart()
        .mark_bar(color=charts.COLOURS[0])
        .encode(
            x=alt.X("place:O", title=None, axis=None), y=alt.Y("bits:Q", title="bits", scale=alt.Scale(domain=[0, 18]))
        )
    )
    names = alt.Chart().mark_text(dy=-7, fontSize=12, font=charts.FONT).encode(x="place:O", y="bits:Q", text="word:N")
    left = (
        alt.layer(words, names, data=alt.Data(values=bars))
        .properties(width=380, height=125)
        .facet(
            row=alt.Row(
                "sentence:N",
                title=None,
                sort=list(dict.fromkeys(bar["sentence"] for bar in bars)),
                header=alt.Header(labelOrient="top", labelAnchor="start", labelFont=charts.FONT, labelFontSize=13),
            ),
            spacing=12,
        )
        .properties(
            title=alt.TitleParams(
                "What each word costs", subtitle="a 3-gram of 2,000 sentences; the fewer bits, the likelier", offset=12
            )
        )
    )
    right = (
        alt.Chart(alt.Data(values=curve))
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X(
                "sentences:Q",
                title="sentences learnt",
                scale=alt.Scale(type="log", nice=False),
                axis=alt.Axis(values=[1, 10, 100, 1000], format=","),
            ),
            y=alt.Y("bits:Q", title="bits a word so far"),
            color=alt.Color(
                "order:N",
                title=None,
                scale=alt.Scale(domain=["single words", "pairs", "triples"], range=charts.COLOURS[:3]),
                legend=alt.Legend(orient="bottom-left"),
            ),
        )
        .properties(
            width=380,
            height=300,
            title=alt.TitleParams("Longer memory, fewer bits", subtitle="every word predicted before it is learnt"),
        )
    )
    charts.save(charts.styled((left | right).resolve_scale(color="independent")), path, "\n".join(told))
    print("\n".join([*told[1:], f"picture: {path}"]))


if __name__ == "__main__":
    main(*sys.argv[1:2])
