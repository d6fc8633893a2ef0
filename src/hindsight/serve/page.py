"""The live page: plain numbers that a script keeps up to date, and a chart; nothing is loaded from elsewhere."""

from __future__ import annotations

import html
from typing import Any

from .openapi import policy

STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --dim: #57606a; --line: #d0d7de; --back: #ffffff;
  --own: #0969da; --best: #1a7f37; --constant: #8250df; --bound: #9a6700; --bad: #cf222e }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --dim: #8d96a0; --line: #30363d; --back: #0d1117;
  --own: #4493f8; --best: #3fb950; --constant: #ab7df8; --bound: #d29922; --bad: #f85149 } }
* { box-sizing: border-box }
body { font: 16px/1.45 system-ui, sans-serif; margin: 0 auto; max-width: 60em; padding: 1em; color: var(--ink);
  background: var(--back) }
h1 { font-size: 1.3em; margin: 0 0 .1em } h2 { font-size: 1em; margin: 1.4em 0 .3em; color: var(--dim) }
p { margin: .2em 0; overflow-wrap: anywhere } .dim { color: var(--dim) } .bad { color: var(--bad) }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(9.5em, 1fr)); gap: .6em; margin: .8em 0 }
dl div { border: 1px solid var(--line); border-radius: .4em; padding: .4em .6em }
dt { font-size: .8em; color: var(--dim) } dd { margin: 0; font-size: 1.15em; font-variant-numeric: tabular-nums }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: .95em }
th { text-align: left; font-weight: normal; color: var(--dim); font-size: .85em }
td, th { padding: .15em .6em .15em 0; border-bottom: 1px solid var(--line); overflow-wrap: anywhere }
td.n, th.n { text-align: right; overflow-wrap: normal; white-space: nowrap }
svg { width: 100%; height: auto; display: block } svg text { font: 12px system-ui, sans-serif; fill: var(--dim) }
svg circle { fill: var(--back); stroke-width: 2; stroke-dasharray: none }
.grid { stroke: var(--line) } .own { stroke: var(--own) } .best { stroke: var(--best) }
.constant { stroke: var(--constant) } .bound { stroke: var(--bound); stroke-dasharray: 6 4 }
.key span { white-space: nowrap; margin-right: 1em } .key b { display: inline-block; width: 1.2em; height: .2em;
  vertical-align: middle; margin-right: .3em }
.key .own { background: var(--own) } .key .best { background: var(--best) }
.key .constant { background: var(--constant) } .key .bound { background: var(--bound) }
.two { display: grid; grid-template-columns: repeat(auto-fit, minmax(17em, 1fr)); gap: 0 2em }
"""

SCRIPT = """
"use strict";
const at = id => document.getElementById(id);
const none = v => v === null || v === undefined;
const num = (v, d = 4) => none(v) ? "–" : Number(v).toLocaleString("en", {maximumSignificantDigits: d});
const whole = v => none(v) ? "–" : Number(v).toLocaleString("en");
const ms = v => none(v) ? "–" : num(1000 * v, 3) + " ms";
function put(id, text) { const node = at(id); if (node && node.textContent !== text) node.textContent = text; }
function fill(id, rows) {
  const body = at(id); body.replaceChildren();
  for (const row of rows) {
    const line = document.createElement("tr");
    for (const [text, kind] of row) {
      const cell = document.createElement("td");
      cell.textContent = text; if (kind) cell.className = kind; line.append(cell);
    }
    body.append(line);
  }
}
const SVG = "http://www.w3.org/2000/svg";
function add(svg, name, attributes, text) {
  const node = document.createElementNS(SVG, name);
  for (const key in attributes) node.setAttribute(key, attributes[key]);
  if (text !== undefined) node.textContent = text;
  svg.append(node);
}
function draw(told) {
  const svg = at("chart"), W = Math.max(300, svg.clientWidth), H = 300, L = 60, B = 26, T = 8, R = 12;
  svg.replaceChildren(); svg.setAttribute("viewBox", "0 0 " + W + " " + H);
  const points = told.points || [], first = points.length > 1 ? points[0][0] : 1;
  const path = ((told.certificate && told.certificate.path) || []).filter(p => p[0] >= first);
  const series = [["own", points.map(p => [p[0], p[1]])], ["constant", points.map(p => [p[0], p[2]])],
    ["best", path.map(p => [p[0], p[2] === null ? null : p[2] / p[0]])],
    ["bound", path.map(p => [p[0], p[3] === null ? null : p[3] / p[0]])]];
  const good = p => p[1] !== null && isFinite(p[1]) && p[1] > 0 && p[0] > 0;
  const all = series.flatMap(s => s[1].filter(good));
  if (all.length < 2) { add(svg, "text", {x: L, y: H / 2}, "too few rows to draw"); return; }
  const xs = all.map(p => Math.log10(p[0]));
  const own = series.slice(0, 3).flatMap(s => s[1].filter(good)).map(p => Math.log10(p[1]));
  const x0 = Math.min(...xs), x1 = Math.max(...xs, x0 + 0.3);
  let y0 = Math.min(...own), y1 = Math.max(...own);
  y1 = Math.min(Math.max(y1, ...series[3][1].filter(good).slice(-1).map(p => Math.log10(p[1]))), y1 + 1);
  const pad = Math.max(0.05, 0.06 * (y1 - y0)); y0 -= pad; y1 += pad;
  const X = v => L + (W - L - R) * (Math.log10(v) - x0) / (x1 - x0);
  const Y = v => T + (H - B - T) * (y1 - Math.log10(v)) / (y1 - y0);
  for (let k = Math.floor(x0); k <= x1; k++)
    for (const step of x1 - x0 > 2 ? [1] : [1, 2, 5]) {
      const v = step * 10 ** k, side = X(v) > W - 40 ? "end" : "middle";
      if (Math.log10(v) >= x0 && Math.log10(v) <= x1)
        add(svg, "text", {x: X(v), y: H - 8, "text-anchor": side}, whole(v));
    }
  const step = (y1 - y0) / 4;
  for (let k = 0; k <= 4; k++) {
    const v = 10 ** (y0 + pad / 2 + k * (step - pad / 4));
    add(svg, "line", {x1: L, x2: W - R, y1: Y(v), y2: Y(v), class: "grid"});
    add(svg, "text", {x: L - 6, y: Y(v) + 4, "text-anchor": "end"}, num(v, 2));
  }
  for (const [name, pairs] of series) {
    const inside = v => Math.max(T, Math.min(H - B, Y(v)));
    const drawn = pairs.filter(good).map(p => X(p[0]).toFixed(1) + "," + inside(p[1]).toFixed(1));
    if (name === "best" || name === "bound")  // known at these rows alone
      for (const p of pairs.filter(good)) add(svg, "circle", {cx: X(p[0]), cy: inside(p[1]), r: 3, class: name});
    if (drawn.length > 1) add(svg, "polyline", {points: drawn.join(" "), class: name, fill: "none", "stroke-width": 2});
  }
}
function show(told) {
  put("rows", whole(told.sequence)); put("rate", num(told.rate, 3) + " /s"); put("pending", whole(told.pending));
  put("features", whole(told.features)); put("refused", whole(told.refused)); put("waiting", whole(told.waiting));
  put("sync", ms(told.sync)); put("learn", ms(told.learn_seconds.p50) + ", " + ms(told.learn_seconds.p99));
  put("predict", ms(told.predict_seconds.p50) + ", " + ms(told.predict_seconds.p99));
  put("broken", told.broken || "");
  if (!told.settled) return;
  put("of", told.of + " per row"); put("loss", num(told.mean_loss)); put("constant", num(told.mean_constant));
  put("drift", "drift: " + told.drift.claim);
  put("order", [told.order, ...told.warnings].filter(Boolean).map(line => "warning: " + line).join(" · "));
  const c = told.certificate;
  put("verdict", c ? c.verdict + " (first " + whole(c.sequence) + " rows)" : "–");
  put("claims", c ? c.claims.join(". ") : "");
  const per = v => c && !none(v) ? num(v / c.sequence) : "–", value = v => typeof v === "number" ? num(v) : v;
  put("regret", none(told.best) ? (c ? num(c.regret) : "–") : num(told.loss - told.best));
  put("best", none(told.best) ? per(c && c.best) : num(told.best / told.weight)); put("limit", per(c && c.bound));
  const named = w => w.feature + (w.label === null ? "" : " (" + w.label + ")");
  fill("top", told.top.map(w => [[named(w), ""], [num(w.weight), "n"]]));
  const cells = m => [whole(m.sequence), value(m.predicted), value(m.target), num(m.loss)].map(text => [text, "n"]);
  fill("mistakes", told.newest_mistakes.map(cells));
  draw(told);
}
const source = new EventSource("/events");
source.addEventListener("summary", event => { show(JSON.parse(event.data)); put("state", "live"); });
source.onerror = () => put("state", "the connection was lost; trying again");
"""


def number(value: Any, digits: int = 4) -> str:
    """A number to be read."""
    return "–" if value is None else f"{value:,.{digits}g}" if isinstance(value, float) else f"{value:,}"


def seconds(value: float | None) -> str:
    """Seconds as milliseconds."""
    return "–" if value is None else f"{1000 * value:.3g} ms"


def live_page(told: dict[str, Any], about: dict[str, Any]) -> tuple[str, str]:
    """The page with the numbers of now, and what it may do.

    Parameters
    ----------
    told : dict
        What `Api.summary` returns.
    about : dict
        What `Service.about` returns.
    """
    certificate = told.get("certificate") or {}
    rounds = certificate.get("sequence") or 1
    best, bound = (None if certificate.get(n) is None else certificate[n] / rounds for n in ("best", "bound"))
    regret = certificate.get("regret")
    if told.get("best") is not None:  # of all rows so far, not only of those that were certified
        best, regret = told["best"] / told["weight"], told["loss"] - told["best"]
    verdict = f"{certificate['verdict']} (first {rounds:,} rows)" if certificate else "–"
    numbers = [
        ("rows", "rows learnt", number(told["sequence"])),
        ("rate", "rows per second", number(told["rate"], 3)),
        ("loss", told.get("of", "loss") + " per row", number(told.get("mean_loss"))),
        ("constant", "best constant so far", number(told.get("mean_constant"))),
        ("best", "best fixed predictor in hindsight", number(best)),
        ("limit", "bound on the loss", number(bound)),
        ("regret", "regret in all", number(regret)),
        ("verdict", "certificate", verdict),
        ("learn", "learn: median, p99", pair(told["learn_seconds"])),
        ("predict", "predict: median, p99", pair(told["predict_seconds"])),
        ("sync", "sync to disk", seconds(told["sync"])),
        ("features", "features", number(told["features"])),
        ("pending", "waiting for outcomes", number(told["pending"])),
        ("waiting", "waiting requests", number(told["waiting"])),
        ("refused", "rows refused", number(told["refused"])),
    ]
    cells = "".join(
        f'<div><dt>{html.escape(what)}</dt><dd id="{name}">{html.escape(text)}</dd></div>'
        for name, what, text in numbers
    )
    weights = "".join(
        row(
            (each["feature"] + ("" if each["label"] is None else f" ({each['label']})"), ""),
            (number(each["weight"]), "n"),
        )
        for each in told.get("top", ())
    )
    mistakes = "".join(
        row(*((plain(each[name]), "n") for name in ("sequence", "predicted", "target", "loss")))
        for each in told.get("newest_mistakes", ())
    )
    warnings = [line for line in [told.get("order"), *told.get("warnings", ())] if line]
    drift = told.get("drift", {"claim": "nothing was learnt yet"})
    key = "".join(f'<span><b class="{name}"></b>{what}</span>' for name, what in KEY)
    text = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>hindsight</title>'
        f'<link rel="icon" href="data:,"><style>{STYLE}</style></head><body>'
        f"<h1>hindsight: {html.escape(str(about['target']))}</h1>"
        f'<p class="dim">{html.escape(about["learner"])}</p>'
        f'<p class="dim"><span id="state">as of now; a script keeps the numbers up to date</span> · '
        '<a href="/docs">API</a> · <a href="/certificate?text=1">certificate</a> · <a href="/metrics">metrics</a></p>'
        f'<p class="bad" id="broken">{html.escape(told["broken"] or "")}</p>'
        f"<dl>{cells}</dl>"
        f'<p class="key dim">{key}</p><svg id="chart" viewBox="0 0 720 300" role="img" '
        'aria-label="loss per row so far: the service, the best constant, a fixed predictor, the bound"></svg>'
        f'<p class="bad" id="order">{html.escape(" · ".join(f"warning: {line}" for line in warnings))}</p>'
        f'<p class="dim" id="drift">drift: {html.escape(drift["claim"])}</p>'
        f'<p class="dim" id="claims">{html.escape(". ".join(certificate.get("claims", ())))}</p>'
        '<div class="two"><section><h2>largest weights</h2><table>'
        '<thead><tr><th>feature</th><th class="n">weight</th></tr>'
        f'</thead><tbody id="top">{weights}</tbody></table></section>'
        '<section><h2>newest mistakes</h2><table><thead><tr><th class="n">row</th><th class="n">predicted</th>'
        f'<th class="n">target</th><th class="n">loss</th></tr></thead><tbody id="mistakes">{mistakes}</tbody></table>'
        f"</section></div><script>{SCRIPT}</script></body></html>"
    )
    return text, policy(STYLE, SCRIPT)


KEY = (
    ("own", "loss per row"),
    ("constant", "best constant"),
    ("best", "fixed predictor of the bound"),
    ("bound", "bound, at the dots"),
)


def pair(held: dict[str, float | None]) -> str:
    """A median and a 99th percentile."""
    return f"{seconds(held['p50'])}, {seconds(held['p99'])}"


def plain(value: Any) -> str:
    """A value to be read."""
    return value if isinstance(value, str) else number(value)


def row(*cells: tuple[str, str]) -> str:
    """A row of a table."""
    return "<tr>" + "".join(f'<td class="{kind}">{html.escape(text)}</td>' for text, kind in cells) + "</tr>"
