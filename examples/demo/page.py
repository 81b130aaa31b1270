"""The page of `make up`: one HTML file without anything from elsewhere, in light and dark.

Called by __main__.py with the results of run_orders.py.
"""

from __future__ import annotations

from html import escape

from examples.demo.run_orders import Demonstration, Table

_STYLE = """
:root { color-scheme: light dark; --line: #d0d7de; --soft: #f6f8fa; }
@media (prefers-color-scheme: dark) { :root { --line: #3d444d; --soft: #151b23; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { margin-bottom: 0; } h2 { margin-top: 2.5rem; }
.picture { overflow-x: auto; border: 1px solid var(--line); border-radius: 6px; padding: 1rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { text-align: left; padding: .3rem .9rem; border-bottom: 1px solid var(--line); }
td:last-child { font-variant-numeric: tabular-nums; }
pre, code { background: var(--soft); border-radius: 6px; }
pre { padding: 1rem; overflow-x: auto; } code { padding: .1rem .3rem; }
"""


def render(demonstration: Demonstration, live: tuple[Table, ...], bootstrap_servers: str, worker: str) -> str:
    """The whole page as text. `live` are the results of the running app, `worker` the address of its HTTP door."""
    running = "\n".join(_table(table) for table in live)
    tables = "\n".join(_table(table) for table in demonstration.results)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Streamfleet: the orders app</title>
<link rel="icon" href="data:,">
<style>{_STYLE}</style>
</head>
<body>
<h1>The orders app</h1>
<p>Orders are joined with their customers and summed per country in windows of five minutes. The app is
<code>examples/apps/orders.py</code>. It runs as a worker process, exactly once, on the development broker at
<code id="broker">{escape(bootstrap_servers)}</code>: look at its <a href="http://{worker}/status">status</a> and its
<a href="http://{worker}/metrics">metrics</a>. <code>make down</code> stops the worker, the broker and this page.</p>
<h2>Results on the broker</h2>
{running}
<h2>Topology</h2>
<div class="picture">{demonstration.picture}</div>
<p><a href="orders.svg">The picture alone</a></p>
<h2>The same records through the test driver</h2>
<p>On one partition, without a broker: how the app is tested. Windows may differ from those above by records that came late: on the
broker they are spread over partitions, and each has its own time.</p>
{tables}
<h2>What it needs from Kafka</h2>
{_table(demonstration.internal_topics)}
<h2>Description</h2>
<pre>{escape(demonstration.description)}</pre>
</body>
</html>
"""


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in table.columns)
    rows = "\n".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows)
    return f'<h3>{escape(table.title)}</h3>\n<div class="scroll"><table><tr>{head}</tr>\n{rows}\n</table></div>'
