"""A picture of a wiring: layers as columns, excitatory and inhibitory synapses apart, weights as widths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lrcnet.pages import palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from lrcnet.wirings.base import Wiring

Points = np.ndarray[Any, np.dtype[np.float64]]

EXCITATORY, INHIBITORY = palette.BLUE, palette.VERMILION
NEURON_COLOURS = {
    "input": palette.GREY,
    "inter": palette.GREEN,
    "command": palette.OCHRE,
    "motor": palette.PURPLE,
}
# In inches: from column to column, between the neurons of the longest column, and the least height of a picture.
_COLUMN_WIDTH, _NEURON_DISTANCE, _LEAST_HEIGHT, _MOST_HEIGHT = 1.7, 0.3, 2.4, 7.5
# Lines in points: the widest of trained weights, and the only width of untrained ones.
_WIDEST, _PLAIN = 2.5, 0.9
_DASHES = (0, (3.2, 0.9))
# Beyond this number of neurons in a column, labels would overlap.
_MOST_LABELS = 24


class Column(NamedTuple):
    """One column of neurons, all of one type.

    Attributes:
        kind: a key of `NEURON_COLOURS`.
        neurons: from top to bottom; inputs are -1, -2 ... for the first, the second ...
    """

    kind: str
    neurons: list[int]


class Edge(NamedTuple):
    """One synapse: its neurons, its sign, and its width in points."""

    src: int
    dest: int
    sign: float
    width: float


def draw_wiring(
    wiring: Wiring,
    layer: Any = None,
    *,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
) -> Figure:
    """Return a matplotlib figure of a wiring; see `Wiring.draw`."""
    from matplotlib.figure import Figure

    columns = _arrange(wiring)
    edges = _read_edges(wiring, layer)
    longest = max(len(column.neurons) for column in columns)
    height = min(max(_LEAST_HEIGHT, longest * _NEURON_DISTANCE), _MOST_HEIGHT)
    with palette.figure_style():
        figure = Figure(figsize=(_COLUMN_WIDTH * len(columns) + 0.6, height + 0.9), layout="constrained")
        axes = figure.add_subplot()
        axes.set_axis_off()
        # One unit is an inch, so that circles are round and curves keep their form.
        axes.set_aspect("equal")
        distance = height / longest
        places = _place(columns, height)
        _draw_edges(axes, edges, places, distance)
        _draw_neurons(axes, columns, places, distance, height)
        names = {-1 - i: name for i, name in enumerate(_names("inputs", inputs, wiring.input_dim or 0))}
        names |= dict(enumerate(_names("outputs", outputs, wiring.output_size)))
        _label(axes, columns, places, names, distance)
        _explain(figure, edges, trained=layer is not None)
    return figure


def _arrange(wiring: Wiring) -> list[Column]:
    """Return the columns; hidden neurons in the order of their sources, so that fewer lines cross."""
    columns = [Column("input", [-1 - i for i in range(wiring.input_dim or 0)])]
    for number in range(wiring.num_layers):
        neurons = wiring.get_neurons_of_layer(number)
        kinds = [wiring.get_type_of_neuron(neuron) for neuron in neurons]
        # A wiring without layers still has motor neurons and others.
        columns += [
            Column(kind, [neuron for neuron, own in zip(neurons, kinds, strict=True) if own == kind])
            for kind in sorted(set(kinds), key=list(NEURON_COLOURS).index)
        ]
    heights = {neuron: i / max(1, len(columns[0].neurons) - 1) for i, neuron in enumerate(columns[0].neurons)}
    polarities = wiring.polarities()
    for column in columns[1:]:
        if column.kind != "motor":
            means = {}
            for neuron in column.neurons:
                rows = np.flatnonzero(polarities[:, neuron])
                sources = [int(row) if row < wiring.units else wiring.units - 1 - int(row) for row in rows]
                known = [heights[source] for source in sources if source in heights]
                means[neuron] = float(np.mean(known)) if known else 0.5
            column.neurons.sort(key=lambda neuron, means=means: (means[neuron], neuron))  # type: ignore[misc]
        heights |= {neuron: i / max(1, len(column.neurons) - 1) for i, neuron in enumerate(column.neurons)}
    return columns


def _read_edges(wiring: Wiring, layer: Any) -> list[Edge]:
    """Return the synapses, the strongest last; a layer gives their signs and widths, by k * e_l."""
    polarities = wiring.polarities()
    strengths = polarities.astype(np.float64)
    if layer is not None:
        strengths = _read_strengths(layer, polarities.shape)
        if (strengths[polarities == 0] != 0).any():
            raise ValueError(
                "the layer must have the synapses of this wiring, but has others too; draw layer.wiring instead"
            )
    largest = np.abs(strengths).max() or 1.0
    edges = []
    for row, dest in np.argwhere(polarities != 0).tolist():
        strength = float(strengths[row, dest])
        width = _PLAIN if layer is None else 0.15 + _WIDEST * abs(strength) / largest
        src = row if row < wiring.units else wiring.units - 1 - row
        edges.append(Edge(src, dest, strength or float(polarities[row, dest]), width))
    return sorted(edges, key=lambda edge: edge.width)


def _read_strengths(layer: Any, shape: tuple[int, ...]) -> Points:
    """Return k * e_l (J, m) of a layer or cell."""
    if not hasattr(layer, "circuit"):
        raise TypeError(f"layer must be a liquid layer or cell, but is a {type(layer).__name__}; pass one of these")
    circuit: Mapping[str, Any] = layer.circuit()
    strengths = (circuit["k"] * circuit["e_l"]).cpu().double().numpy()
    if strengths.shape != shape:
        raise ValueError(
            f"the layer must have synapses of shape {shape}, (units + inputs, units), but has {strengths.shape}; draw "
            "layer.wiring instead"
        )
    return np.asarray(strengths)


def _place(columns: list[Column], height: float) -> dict[int, tuple[float, float]]:
    """Return the place of every neuron in inches; columns are centred, and short ones wider apart."""
    places = {}
    for number, column in enumerate(columns):
        count = len(column.neurons)
        distance = min(1.4 * _NEURON_DISTANCE, height / max(1, count))
        for i, neuron in enumerate(column.neurons):
            places[neuron] = number * _COLUMN_WIDTH, ((count - 1) / 2 - i) * distance
    return places


def _draw_edges(axes: Axes, edges: list[Edge], places: dict[int, tuple[float, float]], distance: float) -> None:
    from matplotlib.collections import LineCollection

    # Many lines on a small area stay readable if each is faint.
    opacity = float(np.clip(24 / max(1, len(edges)) ** 0.6, 0.3, 0.85))
    for inhibitory in (False, True):
        some = [edge for edge in edges if (edge.sign < 0) == inhibitory]
        lines = LineCollection(
            [_curve(places[edge.src], places[edge.dest], distance) for edge in some],
            linewidths=[edge.width for edge in some],
            colors=INHIBITORY if inhibitory else EXCITATORY,
            # Apart in a grey print too.
            linestyles=_DASHES if inhibitory else "solid",
            alpha=opacity,
            capstyle="butt",
            zorder=1,
        )
        axes.add_collection(lines)


def _curve(start: tuple[float, float], end: tuple[float, float], distance: float) -> Points:
    """Return a Bezier curve from neuron to neuron; within a column or backwards, it goes around on the right."""
    (x, y), (to_x, to_y) = start, end
    if start == end:
        # A loop at the upper right of the neuron.
        reach = 0.9 * min(distance, 0.45)
        points = [(x, y), (x + 1.6 * reach, y + 0.2 * reach), (x + 0.5 * reach, y + 1.5 * reach), (x, y)]
    elif to_x > x:
        middle = 0.45 * (to_x - x)
        points = [(x, y), (x + middle, y), (to_x - middle, to_y), (to_x, to_y)]
    else:
        bulge = min(0.16 + 0.22 * abs(to_y - y), 0.42 * _COLUMN_WIDTH)
        points = [(x, y), (x + bulge, y), (to_x + bulge, to_y), (to_x, to_y)]
    t = np.linspace(0, 1, 40)[:, None]
    a, b, c, d = np.array(points)
    return np.asarray((1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t**2 * c + t**3 * d)


def _draw_neurons(
    axes: Axes, columns: list[Column], places: dict[int, tuple[float, float]], distance: float, height: float
) -> None:
    from matplotlib.patches import Circle

    radius = min(0.09, 0.36 * distance)
    for number, column in enumerate(columns):
        colour = NEURON_COLOURS[column.kind]
        for neuron in column.neurons:
            axes.add_patch(Circle(places[neuron], radius, facecolor=colour, edgecolor=palette.PAPER, lw=0.8, zorder=3))
        title = f"{len(column.neurons)} {column.kind}{'s' if column.kind == 'input' else ''}"
        title = title.removesuffix("s") if column.kind == "input" and len(column.neurons) == 1 else title
        top = height / 2 + 0.18
        axes.text(number * _COLUMN_WIDTH, top, title, ha="center", va="bottom", color=colour, weight="bold")
    axes.set_xlim(-0.75, (len(columns) - 1) * _COLUMN_WIDTH + 0.75)
    axes.set_ylim(-height / 2 - 0.15, height / 2 + 0.4)


def _names(what: str, given: Sequence[str] | None, count: int) -> list[str]:
    if given is None:
        return [str(i) for i in range(count)]
    if len(given) != count:
        raise ValueError(f"{what} must have a name for each of {count}, but has {len(given)}; leave it out for numbers")
    return list(given)


def _label(
    axes: Axes,
    columns: list[Column],
    places: dict[int, tuple[float, float]],
    names: dict[int, str],
    distance: float,
) -> None:
    for column, side in ((columns[0], "right"), (columns[-1], "left")):
        if len(column.neurons) > _MOST_LABELS:
            continue
        for neuron in column.neurons:
            x, y = places[neuron]
            away = 0.16 if side == "left" else -0.16
            axes.text(x + away, y, names[neuron], ha=side, va="center", fontsize=min(8.0, 60 * distance))


def _explain(figure: Figure, edges: list[Edge], *, trained: bool) -> None:
    from matplotlib.lines import Line2D

    inhibitory = sum(edge.sign < 0 for edge in edges)
    handles = [
        Line2D([], [], color=EXCITATORY, lw=1.6, label=f"{len(edges) - inhibitory} excitatory"),
        Line2D([], [], color=INHIBITORY, lw=1.6, ls=_DASHES, label=f"{inhibitory} inhibitory"),
    ]
    if trained:
        handles.append(Line2D([], [], color=palette.GREY, lw=_WIDEST, label=r"width: $|k\,e_\ell|$"))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), handlelength=2.2)
