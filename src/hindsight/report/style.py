"""How a report looks, and the script that draws its charts."""

STYLE = """
:root { color-scheme: light dark; --page: #ffffff; --card: #f6f8fa; --ink: #1f2328; --soft: #57606a; --line: #d0d7de;
  --accent: #0969da; --HOLDS: #1a7f37; --VOID: #9a6700; --UNCHECKABLE: #57606a; --BROKEN: #cf222e; --NONE: #57606a }
@media (prefers-color-scheme: dark) {
  :root { --page: #0d1117; --card: #161b22; --ink: #e6edf3; --soft: #9198a1; --line: #30363d; --accent: #4493f8;
    --HOLDS: #3fb950; --VOID: #d29922; --UNCHECKABLE: #9198a1; --BROKEN: #f85149; --NONE: #9198a1 }
}
* { box-sizing: border-box }
body { font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; margin: 0 auto; padding: 1.5em 1em 4em;
  max-width: 66em; color: var(--ink); background: var(--page) }
header p.brand { color: var(--soft); margin: 0; font-size: .85em; letter-spacing: .08em; text-transform: uppercase }
h1 { font-size: 1.7em; line-height: 1.25; margin: .1em 0 .1em; overflow-wrap: anywhere }
h2 { font-size: 1.2em; margin: 2.2em 0 .6em; padding-top: .8em; border-top: 1px solid var(--line); overflow-wrap: anywhere }
h3 { font-size: 1em; margin: 0 0 .1em } p { margin: .4em 0 } .soft, figcaption { color: var(--soft); font-size: .9em }
.lead { font-size: 1.15em; margin: 1em 0; max-width: 46em }
.band { border-left: 6px solid var(--tone); background: var(--card); padding: .7em 1em; border-radius: 0 8px 8px 0; margin: 1em 0 }
.band b { color: var(--tone); letter-spacing: .03em }
.HOLDS { --tone: var(--HOLDS) } .VOID { --tone: var(--VOID) } .UNCHECKABLE { --tone: var(--UNCHECKABLE) }
.tone { color: var(--tone) } .BROKEN { --tone: var(--BROKEN) } .NO, .NONE { --tone: var(--NONE) }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5em, 1fr)); gap: .8em; margin: 1em 0 }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .6em .9em }
.tile b { display: block; font-size: 1.55em; line-height: 1.2; font-variant-numeric: tabular-nums }
.tile.first b { color: var(--accent) } .tile span { color: var(--soft); font-size: .85em }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26em), 1fr)); gap: 1em; align-items: start;
  grid-auto-flow: dense }
figure { margin: 0 0 1em; background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .9em 1em;
  min-width: 0; break-inside: avoid }
figure.wide { grid-column: 1 / -1 } .chart { width: 100%; margin-top: .5em; min-height: 40px }
.chart svg { max-width: 100%; height: auto; overflow: visible }
.chart svg text { fill: var(--soft) !important }
.chart svg .role-axis-grid line, .chart svg .role-axis-tick line, .chart svg .role-axis-domain line { stroke: var(--line) !important }
.head { display: flex; justify-content: space-between; align-items: baseline; gap: 1em }
button { font: inherit; font-size: .85em; color: var(--accent); background: none; border: 1px solid var(--line); border-radius: 6px;
  padding: .1em .7em; cursor: pointer; white-space: nowrap }
.scroll { overflow-x: auto; max-width: 100% }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9em }
th, td { text-align: right; padding: .25em 1em .25em 0; border-bottom: 1px solid var(--line); vertical-align: top }
th { color: var(--soft); font-weight: 600 } .left { text-align: left; overflow-wrap: anywhere }
td.hit { color: var(--HOLDS); font-weight: 600 } td.miss { color: var(--soft) }
ul.needs { padding: 0; margin: .6em 0 } ul.needs li { list-style: none; padding-left: 1.6em; text-indent: -1.6em; overflow-wrap: anywhere }
details { margin: .8em 0 } summary { cursor: pointer; color: var(--accent) }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font: 13px/1.5 ui-monospace, Menlo, Consolas, monospace; background: var(--card);
  border-radius: 8px; padding: 1em }
#vg-tooltip-element { visibility: hidden; position: fixed; z-index: 9; padding: .5em .7em; font-size: 13px; background: var(--page);
  color: var(--ink); border: 1px solid var(--line); border-radius: 6px; box-shadow: 0 4px 14px #0003; max-width: 90vw }
#vg-tooltip-element.visible { visibility: visible } #vg-tooltip-element td { border: 0; padding: 0 .5em 0 0 }
#vg-tooltip-element td.key { color: var(--soft) } #vg-tooltip-element td.value { text-align: left; overflow-wrap: anywhere }
@media (max-width: 40em) { body { font-size: 15px; padding: 1em .8em 3em } .tile b { font-size: 1.25em } figure { padding: .7em .6em } }
@media print { body { max-width: none; font-size: 11pt } button { display: none } .band, figure, .tile { break-inside: avoid }
  details > summary { color: var(--ink) } }
"""

SCRIPT = """
const report = JSON.parse(document.getElementById("report").textContent);
const charts = JSON.parse(document.getElementById("charts").textContent);
function draw(id, scale) {
  const chart = charts[id], spec = JSON.parse(JSON.stringify(chart[scale]));
  spec.datasets = Object.fromEntries(chart.data.map(name => [name, report.datasets[name]]));
  return vegaEmbed("#" + id, spec, EMBEDDING);
}
for (const button of document.querySelectorAll("button[data-chart]")) {
  button.addEventListener("click", () => {
    const next = button.dataset.scale === "linear" ? "log" : "linear";
    draw(button.dataset.chart, next);
    button.textContent = (button.dataset.scale = next) === "linear" ? "logarithmic axes" : "linear axes";
  });
}
Promise.all(Object.keys(charts).map(id => draw(id, "linear"))).then(() => { document.body.dataset.drawn = "yes"; });
"""
