"""A report as one HTML page: it loads nothing, runs only its own scripts, and contains all its numbers as JSON."""

from __future__ import annotations

import html
import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ..certificates.certificate import MARK, MEANINGS
from ..certificates.theorems import Verdict
from ..certificates.wording import constant_of, shown_figure
from ..charts.drawing import EMBEDDING, altair, library
from ..charts.runs import best_name, is_far, page_charts, per_row
from ..content_policy import policy_tag
from ..formatting import _n, brief
from ..storage.container import write_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

TERMS = ("miscalibration", "discrimination", "uncertainty")
BY_LABEL = "The Brier score of each label against the rest is miscalibration − discrimination + uncertainty."
IN_HINDSIGHT = "; the best constant and the best fixed weights are those of all rows, known only now"
MOVES = ", by what they move predictions: each times the spread (standard deviation) of its column"
IN_ROUNDS = "over all rows in each round."
CONFUSIONS = "Rows by true label, columns by predicted label; of equals the first is predicted."
FAR_AWAY = " The promise is beyond a linear scale."
NO_CHARTS = "This page has no charts: they need altair and vl-convert (pip install hindsight-learn[charts])."


def write_page(path: str, content: dict[str, Any]) -> None:
    """Write a report.

    Parameters
    ----------
    path : str
        The file to write.
    content : dict
        The result of `hindsight.reports.content.Report.content`.

    Raises
    ------
    ValueError
        If the file cannot be written.
    """
    write_text(path, [page(content)])


def page(content: dict[str, Any]) -> str:
    """The page as text."""
    try:
        altair()
        drawn: dict[str, Any] = page_charts(content)
        script = own_file("page.js").replace("EMBEDDING", json.dumps(EMBEDDING | {"renderer": "svg"}))
        scripts = [library(), script]
    except ValueError:
        drawn, scripts = {}, []
    title, style = f"Hindsight: {content['data']}", own_file("page.css")
    blocks = [f'<script type="application/json" id="report">{in_script(content)}</script>']
    if scripts:
        blocks.append(f'<script type="application/json" id="charts">{in_script(drawn)}</script>')
    parts = [
        header(content, bool(scripts)),
        *(section(each, drawn, len(content["learners"]) > 1) for each in content["learners"]),
        rows_section(content),
        settings_section(content),
    ]
    if "comparison" in content:
        parts.insert(1, comparison_section(content["comparison"], drawn))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">{policy_tag(scripts, [style])}'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escaped(title)}</title><style>{style}</style></head><body>{''.join(parts)}"
        f"{''.join(blocks)}{''.join(f'<script>{code}</script>' for code in scripts)}</body></html>\n"
    )


def own_file(name: str) -> str:
    """The text of a file of this package."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def in_script(value: Any) -> str:
    """A value as JSON inside a script: "<", which only occurs in strings, is escaped so that no tag begins."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def escaped(text: Any) -> str:
    """Text with markup and control characters escaped."""
    spelt = "".join(c if c.isprintable() or c == " " else repr(c)[1:-1] for c in str(text))
    return html.escape(spelt)


def number_cell(value: float | None) -> str:
    """A number for a table; a dash if it is missing."""
    return "–" if value is None else _n(value)


def figure_cell(name: str, value: float | None) -> str:
    """A table cell with a number and its name."""
    return "–" if value is None else shown_figure(name, value)


def table_cells(values: Iterable[Any], left: Collection[int] = (), heads: int = 0) -> str:
    """Table cells with this text, left-aligned in some of the columns; the first ones are heads."""
    out = ""
    for j, text in enumerate(values):
        tag, kind = "th" if j < heads else "td", ' class="left"' if j in left else ""
        out += f"<{tag}{kind}>{escaped(text)}</{tag}>"
    return out


def html_table(head: Collection[Any], rows: Iterable[Any], left: Collection[int] = (), heads: int = 0) -> str:
    """A table, which scrolls if it is too wide; rows are values, the first of them heads, or cells."""
    lines = [table_cells(head, left, len(head))] if head else []
    lines += [row if isinstance(row, str) else table_cells(row, left, heads) for row in rows]
    return f'<div class="scroll"><table>{"".join(f"<tr>{line}</tr>" for line in lines)}</table></div>'


def soft(text: str) -> str:
    """A remark."""
    return f'<p class="soft">{escaped(text)}</p>'


def percent_cell(part: float | None) -> str:
    """A fraction as a percentage; empty if it is 0 or missing."""
    return f"{100 * part:.3g} %" if part else ""


# ---------------------------------------------------------------- what it opens with


def header(content: dict[str, Any], drawn: bool) -> str:
    """The name of the data, the first line in words, and the verdict."""
    what = content["data"] if content["target"] is None else f"Predicting {content['target']} from {content['data']}"
    size = f"{content['rows']:,} rows × {content['features']:,} features"
    size += f" ({content['preparation']})" if content["preparation"] else ""
    notes = [*(f"Warning: {w}." for w in content["warnings"]), *content["notes"], *([] if drawn else [NO_CHARTS])]
    out = f'<header><p class="brand">Hindsight report</p><h1>{escaped(what)}</h1><p class="soft">'
    out += f"{escaped(size)}; {escaped(content['how'])}.</p></header>"
    each = content["learners"]
    out += opening(each[0]) if len(each) == 1 else openings(each)
    return out + "".join(map(soft, notes))


def openings(learners: list[dict[str, Any]]) -> str:
    """The opening for several learners: the results of each in words, and its verdict."""
    out = ""
    for each in learners:
        verdict = each["verdict"] or "NO CERTIFICATE"
        worth = f", {each['worth']}" if each["worth"] else ""
        said = ". ".join(first_capital(line) for line in each["words"])
        out += f'<p class="lead {verdict.split()[0]}"><b>{escaped(each["name"])}</b>: {escaped(said)}. '
        out += f'<b class="tone">{verdict}{worth}</b></p>'
    return out


def first_capital(text: str) -> str:
    """A sentence with a capital letter at its start."""
    return text[:1].upper() + text[1:]


def opening(each: dict[str, Any]) -> str:
    """The opening for one learner: a warning if a constant would have lost less, the results, and the verdict."""
    advised, first, last, what = [c for c in each["certificates"] if c["advice"]], "", "", constant_of(each["unit"])
    if advised and len(each["certificates"]) == 1:
        first = f"<b>This run lost more than {escaped(what)} would have.</b>"
        first = f'<p class="band VOID">{first} {escaped(first_capital(advised[0]["advice"]))}.</p>'
    elif advised:
        who = ", ".join(c["label"] for c in advised)
        last = f"Against the rest, more was lost than {what} would have lost, for: {who}; {advised[0]['advice']}."
    lead = " ".join(f"{first_capital(line)}." for line in each["words"])
    notes = [*each["notes"], *filter(None, [last])]
    return (
        f'{first}<p class="lead">{escaped(lead)}</p>{figure_tiles(each)}{verdict_band(each)}{"".join(map(soft, notes))}'
    )


def verdict_band(each: dict[str, Any]) -> str:
    """The verdict, and how useful the guarantee is."""
    verdict = each["verdict"] or "NONE"
    if each["verdict"] is None:
        why = each.get("why") or "no promise was checked"
        return f'<div class="band NONE"><b>NO CERTIFICATE</b>: {escaped(why)}.</div>'
    first = each["certificates"][0]
    source = f" ({first['theorem']['source']})" if first["theorem"]["source"] else ""
    worth = f" {first_capital(each['meaning'])}." if each["worth"] else ""
    means = MEANINGS[Verdict.HOLDS] if each["worth"] else each["meaning"]
    label = f"{verdict}, {each['worth']}" if each["worth"] else verdict
    tone = "NONE" if each["worth"] == "vacuous" else verdict
    needs = [n for c in each["certificates"] for n in c["assumptions"] if n["met"] is not True]
    why = "".join(f"<p>{MARK[n['met']]} {escaped(n['text'])}</p>" for n in needs[:3])
    theorem = escaped(f"{first['theorem']['name']}{source}")
    return (
        f'<div class="band {tone}"><b>{escaped(label)}</b>: {escaped(means)}.{escaped(worth)}'
        f'<p class="soft">{theorem}: {escaped(first["theorem"]["statement"])}</p>{why}</div>'
    )


def figure_tiles(each: dict[str, Any]) -> str:
    """The main numbers, each with its name."""
    cells = [
        f'<div class="tile{" first" if k == 0 else ""}"><span>{escaped(name)}</span><b>{escaped(text)}</b></div>'
        for k, (name, text) in enumerate(each["tiles"])
    ]
    return f'<div class="tiles">{"".join(cells)}</div>'


# ---------------------------------------------------------------- one learner


def figure(drawn: dict[str, Any], place: str, title: str, caption: str, wide: bool = False, inside: str = "") -> str:
    """A chart with its title and caption; empty if there is no chart."""
    if place not in drawn and not inside:
        return ""
    switch = ""
    if "log" in drawn.get(place, {}):
        switch = f'<button type="button" data-chart="{place}" data-scale="linear">logarithmic axes</button>'
    chart = f'<div class="chart" id="{place}"></div>' if place in drawn else ""
    kind = ' class="wide"' if wide else ""
    head = f'<div class="head"><h3>{escaped(title)}</h3>{switch}</div>'
    return f"<figure{kind}>{head}<figcaption>{escaped(caption)}</figcaption>{chart}{inside}</figure>"


def section(each: dict[str, Any], drawn: dict[str, Any], several: bool) -> str:
    """The section of one learner: its charts, its confusion table, and its complete certificate."""
    k = each["key"]
    sample = ""
    if each.get("of", 0) > each.get("sample", 0):
        sample = f" A random sample of {each['sample']:,} of {each['of']:,} rows."
    order, moves = ("first", MOVES) if each["moves"] else ("largest", "")
    beside = ""
    if any(c["best"] is not None for c in each["certificates"]):
        beside = " Green: the best fixed weights, where they are on this scale."
    histogram = f'<div class="chart" id="c-histogram{k}"></div>' if f"c-histogram{k}" in drawn else ""
    intercept = f" Intercept {brief(each['intercept'][0])}." if len(each["intercept"]) == 1 else ""
    run = f"Of the predictions made before each row was learnt{IN_HINDSIGHT if each['certificates'] else ''}."
    regret = f"What the run had lost until then beyond the {best_name(each)} of all rows, on the same rounds."
    far = {name: FAR_AWAY if is_far(each, name) else "" for name in ("loss", "regret")}
    weights = f"The {order} of {each['nonzero']:,} that are not 0{moves}.{beside}{intercept}"
    called = f"If rows are called {each.get('positive')} where the {each.get('scores', 'score')} is at least this."
    many = len(each.get("confusion", {}).get("labels", ())) > 6

    def chart(name: str, title: str, caption: str, **more: Any) -> str:
        return figure(drawn, name and f"c-{name}{k}", title, caption, **more)

    figures = [
        chart("loss", "Loss along the run", run + far["loss"], wide=True),
        chart("regret", "Regret per round", regret + far["regret"]),
        chart("rounds", "Errors per round", f"{first_capital(per_row(each['unit']))} {IN_ROUNDS}", wide=True),
        chart("weights", "Weights", weights),
        chart("shares", "Members of the panel", f"The weight of each along the run{first_of(each)}."),
        chart("coverage", "Coverage along the run", covered(each)),
        chart("ranges", "Intervals of the last rows", "Orange: outside the interval made beforehand."),
        chart("predicted", "Predicted against true", f"On the dashed line both are equal.{sample}"),
        chart("", "Confusions", CONFUSIONS, wide=many, inside=confusion(each)),
        label_choice(each, drawn),
        chart("link", "The learnt link", "The mean of the target over the margin w·x, nondecreasing."),
        chart("threshold", "Threshold", f"{called}{sample}"),
        chart("calibration", "Calibration", f"{calibrated(each)}{sample}", inside=histogram),
        chart("", "Calibration by label", BY_LABEL, wide=True, inside=calibration_table(each)),
    ]
    head = f"<h2>{escaped(each['name'] if several else 'The run')}</h2>"
    first = opening(each) if several else ""
    body = f'{soft(each["title"])}<div class="grid">{"".join(figures)}</div>'
    return f"<section>{head}{first}{body}{in_full(each)}</section>"


def first_of(each: dict[str, Any]) -> str:
    """The label that the chart of the members is about, if each label has its own panel."""
    found = each["certificates"]
    return f", for {found[0]['label']} against the rest" if len(found) > 1 else ""


def covered(each: dict[str, Any]) -> str:
    """The coverage of intervals in words; empty if there are none."""
    found = each.get("coverage")
    return " ".join(first_capital(line.strip()) + "." for line in found["lines"][1:3]) if found else ""


def label_choice(each: dict[str, Any], drawn: dict[str, Any]) -> str:
    """If there are more than two labels: a choice of the label that the following charts are about."""
    places = [f"c-{name}{each['key']}" for name in ("link", "threshold", "calibration", "histogram")]
    places = [place for place in places if place in drawn]
    if not each.get("chosen") or not places:
        return ""
    options = "".join(f'<option value="{j}">{escaped(label)}</option>' for j, label in enumerate(each["chosen"]))
    count, some = each["labels"], len(each["chosen"])
    rest = f" These are the most frequent {some} of {count:,} labels." if count > some else ""
    return (
        f'<p class="choice"><label>The label <select data-charts="{" ".join(places)}">{options}</select> against the '
        f'rest</label><span class="soft">{rest}</span></p>'
    )


def calibrated(each: dict[str, Any]) -> str:
    """The caption of the calibration chart; for two labels with the terms of the Brier score."""
    found = each.get("calibration")
    if not found:
        return ""
    out = (
        "Isotonic regression (PAV) of the outcomes on the probabilities; the band is where that of a calibrated "
        "forecaster lies with probability 0.9."
    )
    if each["chosen"]:
        rest = "" if each.get("in_all") else " against the rest, before they are made to sum to 1"
        return f"{out} Probabilities of each label{rest}."
    terms = ", ".join(f"{name} {brief(abs(found[0][name]))}" for name in TERMS)  # all are at least 0
    return f"{out} Brier score {brief(found[0]['score'])}: {terms}."


def calibration_table(each: dict[str, Any]) -> str:
    """The Brier score of each label against the rest, and its terms; empty if there are two labels."""
    if not each.get("chosen") or not each.get("calibration"):
        return ""
    rows = (
        [label, *(brief(abs(found[name])) for name in ("frequency", "score", *TERMS))]
        for label, found in zip(each["chosen"], each["calibration"], strict=True)
    )
    return html_table(["label", "frequency", "Brier score", *TERMS], rows, {0}, 1)


def confusion(each: dict[str, Any]) -> str:
    """The confusion table."""
    found = each.get("confusion")
    if not found:
        return ""
    rows = []
    for i, (label, counts) in enumerate(zip(found["labels"], found["counts"], strict=True)):
        each_label = "".join(f'<td class="{"hit" if i == j else "miss"}">{n:,}</td>' for j, n in enumerate(counts))
        right = f"{100 * counts[i] / sum(counts):.1f} %" if sum(counts) else "–"
        rows.append(table_cells([label], {0}, 1) + each_label + table_cells([right]))
    return html_table(["true", *found["labels"], "right"], rows, {0})


def in_full(each: dict[str, Any]) -> str:
    """The complete certificate, starting with its assumptions."""
    if not each["certificates"]:
        return ""
    needs = "".join(
        f"<li>{MARK[n['met']]} {escaped((c['label'] + ': ' if c['label'] else '') + n['text'])}</li>"
        for c in each["certificates"][:20]
        for n in c["assumptions"]
    )
    lines = "\n".join(each["text"])
    text = "\n".join(map(escaped, lines.split("\n")))
    course = ""
    if len(each["certificates"]) == 1 and each["certificates"][0]["path"]:
        names = ("measured", "comparator", "bound")
        path = each["certificates"][0]["path"]
        course = html_table(
            ["rounds", *names], ([f"{m['rounds']:,}", *(number_cell(m[name]) for name in names)] for m in path)
        )
    needs = f'<ul class="needs">{needs}</ul>'
    above, below = (needs, "") if len(each["certificates"]) == 1 else ("", needs)
    return f"{above}<details><summary>The certificate in full</summary><pre>{text}</pre>{course}{below}</details>"


# ---------------------------------------------------------------- several learners, the rows, the settings


def comparison_section(found: dict[str, Any], drawn: dict[str, Any]) -> str:
    """The comparison of all learners."""
    heads = [name for name in found["table"][0] if name != "name"]
    rows = ([row["name"], *(figure_cell(h, row[h]) for h in heads)] for row in found["table"])
    compared = html_table(["learner", *heads], rows, {0})
    words = "".join(f"<p>{escaped(line)}</p>" for line in found.get("words", [])[:12])
    if words:
        words = soft(f"As forecasters of each row before it, in the {found['loss']} loss:") + words
    level = f"{100 * (1 - found['alpha']):g} %" if "alpha" in found else ""
    pairs = figure(
        drawn,
        "c-pairs",
        "Differences between learners",
        f"With intervals that hold for all pairs and at every time with probability {level}.",
    )
    over = figure(
        drawn, "c-overlay", "All learners along the run", f"{first_capital(found['unit'])} so far.", wide=True
    )
    return f'<section><h2>Learners compared</h2>{compared}<div class="grid">{over}{pairs}</div>{words}</section>'


def rows_section(content: dict[str, Any]) -> str:
    """The columns and their types, and bad rows."""
    columns = content["columns"]
    rows = [[c["name"], c["role"] or c["type"], percent_cell(c["missing"]), c["why"]] for c in columns["shown"]]
    more = columns["count"] - len(columns["shown"])
    rest = soft(f"… and {more:,} more.") if more > 0 else ""
    known = html_table(["column", "type", "missing", "why"], rows, {0, 1, 3}) if rows else ""
    out = f"<section><h2>Columns</h2><details{' open' if len(columns['shown']) <= 12 else ''}>"
    out += f"<summary>{columns['count']:,} columns</summary>{known}{rest}</details>"
    bad = content["rejected"]
    out += f"<p>{f'{bad:,} rows were rejected.' if bad else 'No row was rejected.'}</p>"
    if content["rejects"]:
        rows = [[r["file"], f"{r['line']:,}", r["column"], r["reason"]] for r in content["rejects"]]
        out += soft("The first of them:" if bad > len(rows) else "They are:")
        out += html_table(["file", "line", "column", "reason"], rows, {0, 2, 3})
    return out + "</section>"


def settings_section(content: dict[str, Any]) -> str:
    """Settings and versions."""
    pairs = [*content["settings"].items(), *((f"version of {k}", v) for k, v in content["versions"].items())]
    numbers = soft("All numbers of this page are in it as JSON, in the element “report”.")
    return f"<section><h2>Settings and versions</h2>{html_table([], pairs, {0, 1}, 1)}{numbers}</section>"
