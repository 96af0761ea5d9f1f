"""The curves of a soak as an SVG picture: a panel for each kind of figure, its medians, and the warm-up in grey."""

import html
import statistics

COLOURS = ("#2f6fb0", "#c2571a", "#3d8b40", "#8250a8", "#b8860b", "#5a6470", "#b03060", "#20808d", "#808000", "#444444")
WIDTH, COLUMNS, PANEL, MARGIN = 960, 3, 170, 12
POINTS = 150


def panels(curves):
    """Curves by the title of their panel."""
    found = {}
    for curve in curves:
        title = curve.name.partition(": ")[2] or curve.name
        if curve.kind in ("a second", "p99, ms", "trouble"):
            title = curve.kind
        title = {"resident MB": "memory, MB", "anonymous MB": "memory, MB"}.get(title, title)
        if curve.kind in ("MB", "-wal MB"):
            title = "database, MB"
        elif curve.kind == "rows":
            title = "rows"
        elif curve.kind == "watches":
            title = "watches"
        found.setdefault(title, []).append(curve)
    return found


def thinned(points):
    """At most so many points, each the median of its neighbours."""
    each = max(1, -(-len(points) // POINTS))
    groups = [points[at : at + each] for at in range(0, len(points), each)]
    return [(group[0][0], statistics.median(value for _, value in group)) for group in groups]


def text(x, y, words, extra=""):
    return f'<text x="{x:.0f}" y="{y:.0f}" {extra}>{html.escape(words)}</text>'


def draw(title, curves, warm_up):
    kinds = panels(curves)
    height = 40 + -(-len(kinds) // COLUMNS) * PANEL
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'font-family="system-ui, sans-serif" font-size="11" fill="#24292f">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        text(MARGIN, 22, title, 'font-size="14" font-weight="600"'),
    ]
    end = max(curve.points[-1][0] for curve in curves)
    for place, (name, shown) in enumerate(kinds.items()):
        left = place % COLUMNS * WIDTH / COLUMNS + MARGIN
        parts += panel(left, 40 + place // COLUMNS * PANEL, name, shown, warm_up, end)
    return "\n".join([*parts, "</svg>\n"])


def panel(left, top, name, curves, warm_up, end):
    width, bottom = WIDTH / COLUMNS - 2 * MARGIN, top + PANEL - 58
    most = max(max(value for _, value in curve.points) for curve in curves) or 1
    x = lambda seconds: left + width * seconds / end
    y = lambda value: bottom - (bottom - top - 18) * value / most
    parts = [
        text(left, top + 8, name, 'font-weight="600"'),
        text(left + width, top + 8, f"{most:,.0f}" if most > 10 else f"{most:.2g}", 'text-anchor="end" fill="#5a6470"'),
        f'<rect x="{left:.0f}" y="{top + 18}" width="{x(warm_up) - left:.0f}" height="{bottom - top - 18:.0f}" fill="#eef0f2"/>',
        f'<path d="M{left:.0f} {bottom}h{width:.0f}" stroke="#b8bec6"/>',
        text(left + width, bottom + 12, f"{end / 60:,.0f} min", 'text-anchor="end" fill="#5a6470"'),
    ]
    along, line = left, bottom + 12
    for curve, colour in zip(curves, COLOURS):
        points = " ".join(f"{x(seconds):.1f},{y(value):.1f}" for seconds, value in thinned(curve.points))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.2"/>')
        words = curve.name.removeprefix(name + ": ")
        for prefix, short in (("server ", ""), ("rows of ", ""), (" MB", ""), (": " + name, "")):
            words = words.replace(prefix, short)
        words = f"server {words}" if words.isdigit() else words
        if len(curves) > 1:
            if along + 6 * len(words) > left + width - 40:
                along, line = left, line + 11
            parts.append(text(along, line, words, f'fill="{colour}" font-size="9"'))
            along += 5.2 * len(words) + 8
    return parts
