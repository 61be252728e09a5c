"""The style sheet of every HTML page: for phone, desk and paper, light and dark."""

from __future__ import annotations

from string import Template

from lrcnet.pages import palette

# Text needs a contrast of 4.5 to 1; the light shades are for the dark page.
_TEMPLATE = Template("""
:root{color-scheme:light dark;--paper:$paper;--ink:$ink;--soft:#565e68;--grid:$grid;--card:#f5f6f8;--link:#0a5f97}
@media screen and (prefers-color-scheme:dark){:root{--paper:$dark;--ink:#e8eaed;--soft:#a9b1bb;--grid:#3a4048;
--card:#1d2126;--link:#6bb8ec}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,
"Helvetica Neue",Arial,sans-serif}
header,main,footer{max-width:76rem;margin:0 auto;padding:0 clamp(1rem,3vw,2.5rem)}
header{padding-top:2.5rem}
h1{font-size:clamp(1.5rem,4vw,2.2rem);line-height:1.2;margin:0 0 .5rem}
h2{font-size:1.45rem;line-height:1.25;margin:3rem 0 .75rem;padding-top:.75rem;border-top:2px solid var(--grid)}
h3{font-size:1.05rem;margin:1.75rem 0 .5rem}
p{max-width:65ch;margin:.5rem 0}
a{color:var(--link)}
code,pre{font:.85em/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
pre{background:var(--card);padding:.75rem 1rem;border-radius:.5rem;overflow-x:auto}
.soft,.note,figcaption{color:var(--soft)}
.note,figcaption{font-size:.9rem;max-width:75ch}
nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;padding:0;margin:1rem 0}
.table{overflow-x:auto;margin:1.25rem 0 .5rem}
.table:focus-visible{outline:2px solid var(--link);outline-offset:2px}
table{border-collapse:collapse;width:100%;font-size:.88rem;font-variant-numeric:tabular-nums}
caption{text-align:left;font-weight:600;font-size:1rem;padding:.25rem 0 .5rem}
th,td{text-align:left;vertical-align:top;padding:.4rem .7rem .4rem 0;border-bottom:1px solid var(--grid)}
thead th{font-weight:600;vertical-align:bottom;border-bottom:2px solid var(--ink)}
tbody th{font-weight:500}
td.number,th.number{text-align:right}
td.number{white-space:nowrap}
figure{margin:1.75rem 0;overflow-x:auto}
figure svg{display:block;width:100%;height:auto}
figcaption{margin-top:.5rem}
.finding{font-weight:600;margin:.5rem 0}
details{margin:1rem 0}
summary{cursor:pointer}
footer{padding-top:2rem;padding-bottom:3rem;font-size:.9rem}
@media screen and (max-width:720px){
.table{overflow-x:visible}
table,caption,tbody{display:block}
thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
tr{display:grid;grid-template-columns:1fr 1fr;gap:.15rem 1rem;background:var(--card);border-radius:.6rem;
padding:.6rem .8rem;margin:.6rem 0}
th,td{border:0;padding:.1rem 0;overflow-wrap:anywhere;min-width:0}
tbody th{grid-column:1/-1;font-weight:600}
tbody th+th{margin-top:-.2rem}
td::before{content:attr(data-label);display:block;color:var(--soft);font-size:.8em}
td.number{text-align:left;white-space:normal}
td.empty{display:none}
figure.wide svg{min-width:44rem}
figure.stacked>svg.panel{min-width:0;margin:.75rem auto}
figure.stacked>svg:not(.panel){position:absolute;width:0;height:0;min-width:0;overflow:hidden}
}
@media print{
@page{size:A4 portrait;margin:12mm;@bottom-right{content:counter(page) " / " counter(pages);font:8pt sans-serif}}
:root{color-scheme:light}
html{font-size:9.5pt}
body{font-size:1rem;line-height:1.4}
header,main,footer{max-width:none;padding:0}
nav{display:none}
h2{break-after:avoid;margin-top:1.5rem}
.table{overflow:visible}
table{font-size:7.4pt}
th,td{padding:.15rem .35rem .15rem 0}
caption,thead{break-after:avoid}
tr,figure{break-inside:avoid}
thead{display:table-header-group}
figure svg{max-height:100mm;max-width:100% !important;width:auto}
pre{white-space:pre-wrap;overflow-wrap:anywhere}
a{color:inherit;text-decoration:none}
}
""")


def style_sheet() -> str:
    """Return the CSS with the palette's colours filled in."""
    return _TEMPLATE.substitute(
        paper=palette.PAPER, ink=palette.INK, grid=palette.GRID, dark=palette.DARK_PAPER
    ).strip()
