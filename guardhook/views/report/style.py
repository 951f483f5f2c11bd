"""How a report looks: light and dark by what the reader's system says, one column on narrow screens."""

STYLE = """
:root { color-scheme: light dark; --line: #d5d9e0; --soft: #5c6675; --back: #fff; --raised: #f5f6f8; --text: #1b2027;
  --bad: #b3261e; --warn: #8a5a00; --good: #1a7f37; --mark: #1d5fbf; --pick: #dbe9ff; }
@media (prefers-color-scheme: dark) { :root { --line: #363d48; --soft: #9aa5b4; --back: #14171c; --raised: #1d2128; --text: #e4e8ee;
  --bad: #ff8a80; --warn: #f0b849; --good: #6fd58a; --mark: #82b4ff; --pick: #24364f; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1400px; margin: 0 auto; padding: 20px 20px 0; }
h1 { font-size: 1.4rem; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; margin: 26px 0 8px; }
p { margin: 4px 0; }
.soft { color: var(--soft); }
.bad, .failed { color: var(--bad); } .warn, .timeout { color: var(--warn); } .good, .ok, .completed { color: var(--good); } .running { color: var(--mark); }
.status { font-weight: 600; text-transform: uppercase; font-size: .8rem; letter-spacing: .04em; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(210px, 1fr)); gap: 10px 20px; margin: 8px 0; }
dl.wide { grid-template-columns: 12em 1fr; gap: 4px 16px; }
dt { color: var(--soft); font-size: .82rem; } dd { margin: 0; overflow-wrap: anywhere; }
dl.wide dt { font-size: 1em; }
pre, code, .mono { font: 13px/1.45 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
pre { background: var(--raised); border: 1px solid var(--line); border-radius: 6px; padding: 8px 10px; margin: 4px 0 12px; white-space: pre-wrap;
  overflow-wrap: anywhere; max-height: 60vh; overflow: auto; }
blockquote { margin: 6px 0; padding: 6px 12px; border-left: 3px solid var(--line); background: var(--raised); white-space: pre-wrap; overflow-wrap: anywhere;
  max-height: 14em; overflow: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: 4px 10px 4px 0; border-bottom: 1px solid var(--line); vertical-align: top; overflow-wrap: anywhere; }
th { color: var(--soft); font-weight: 500; font-size: .85rem; }
ul.denials { list-style: none; padding: 0; margin: 0; }
ul.denials li { border: 1px solid var(--line); border-left: 4px solid var(--bad); border-radius: 6px; padding: 8px 12px; margin: 0 0 8px; overflow-wrap: anywhere; }
ul.denials li.ask { border-left-color: var(--warn); }
a { color: var(--mark); }
.bar { display: flex; flex-wrap: wrap; gap: 8px; align-items: center; position: sticky; top: 0; background: var(--back); padding: 8px 0; z-index: 2; }
input[type=search] { flex: 1 1 220px; font: inherit; padding: 6px 10px; border: 1px solid var(--line); border-radius: 6px; background: var(--raised); color: inherit; }
button, select { font: inherit; padding: 5px 12px; border: 1px solid var(--line); border-radius: 6px; background: var(--raised); color: inherit; cursor: pointer; }
button[aria-pressed=true] { border-color: var(--mark); color: var(--mark); font-weight: 600; }
:focus-visible { outline: 2px solid var(--mark); outline-offset: 1px; }
.panes { display: grid; grid-template-columns: minmax(320px, 5fr) 6fr; gap: 16px; height: 78vh; min-height: 420px; }
.list { position: relative; overflow: auto; border: 1px solid var(--line); border-radius: 6px; }
.rows { position: absolute; left: 0; right: 0; top: 0; }
.row { display: flex; gap: 8px; align-items: center; height: 32px; padding: 0 10px; white-space: nowrap; overflow: hidden; cursor: pointer; border-bottom: 1px solid var(--line); }
.row:hover { background: var(--raised); }
.row[aria-selected=true] { background: var(--pick); }
.row .number { color: var(--soft); min-width: 3.2em; text-align: right; font-variant-numeric: tabular-nums; }
.row .name { font-weight: 600; } .row .about { color: var(--soft); overflow: hidden; text-overflow: ellipsis; flex: 1; font-size: 13px; }
.row .took { color: var(--soft); font-size: 12px; }
.tag { font-size: 11px; border-radius: 4px; padding: 0 6px; border: 1px solid currentColor; }
.row.event { color: var(--soft); font-style: italic; }
.row.prompt { font-style: normal; color: var(--mark); }
.detail { overflow: auto; border: 1px solid var(--line); border-radius: 6px; padding: 12px 16px; }
.detail h3 { margin: 0 0 6px; font-size: 1.05rem; overflow-wrap: anywhere; } .detail h4 { margin: 10px 0 2px; font-size: .85rem; color: var(--soft); font-weight: 500; }
.esc { color: var(--warn); font-size: .85em; }
.close { display: none; }
kbd { border: 1px solid var(--line); border-radius: 4px; padding: 0 5px; font-size: 12px; }
footer { max-width: 1400px; margin: 24px auto; padding: 0 20px 20px; color: var(--soft); font-size: .85rem; }
[hidden] { display: none !important; }
@media (max-width: 760px) {
  main, footer { padding-left: 12px; padding-right: 12px; }
  .panes { display: block; height: 78vh; } .list { height: 100%; }
  .detail { position: fixed; inset: 0; background: var(--back); z-index: 5; border: 0; border-radius: 0; display: none; }
  .detail.open { display: block; } .close { display: inline-block; margin-bottom: 8px; }
  dl.wide { grid-template-columns: 1fr; } dl.wide dd { margin-bottom: 8px; }
}
#unprinted { display: none; }
@media print {
  :root { color-scheme: light; --line: #d5d9e0; --soft: #5c6675; --back: #fff; --raised: #f5f6f8; --text: #1b2027;
    --bad: #b3261e; --warn: #8a5a00; --good: #1a7f37; --mark: #1d5fbf; --pick: #fff; }
  .panes { display: block; height: auto; min-height: 0; } .bar, .keys { display: none; }
  .list { height: auto; overflow: visible; } #space { display: none; } .rows { position: static; transform: none !important; }
  .row { break-inside: avoid; } .detail { display: none; } #unprinted { display: block; }
  pre, blockquote { max-height: none; overflow: visible; }
}
"""
