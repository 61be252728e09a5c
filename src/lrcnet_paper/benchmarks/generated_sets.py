"""Generators of small classification sets: sequences (count, steps, channels) and their classes, from a seed.

Each stands for a kind of question that recurrent networks are asked: which shape, which order, which dynamics, which
pattern among many channels. None of them has a parameter that was fitted to a network.
"""

import math

import torch
from torch import Tensor

Half = tuple[Tensor, Tensor]


def _start(count: int, classes: int, seed: int) -> tuple[Tensor, torch.Generator]:
    """Return evenly distributed classes (count,) and a generator."""
    return torch.arange(count) % classes, torch.Generator().manual_seed(seed)


def make_waveforms(count: int, seed: int) -> Half:
    """Make Breiman's waveforms (count, 21, 1): mixtures of two of three triangles, with noise."""
    labels, generator = _start(count, 3, seed + 60)
    t = torch.arange(1, 22).float()
    triangles = torch.stack([torch.clamp(6 - (t - centre).abs(), min=0) for centre in (11, 15, 7)])
    share = torch.rand(count, 1, generator=generator)
    first, second = triangles[torch.tensor([0, 0, 1])[labels]], triangles[torch.tensor([1, 2, 2])[labels]]
    noise = torch.randn(count, 21, generator=generator)
    return (share * first + (1 - share) * second + noise).unsqueeze(-1), labels


def make_control_charts(count: int, seed: int) -> Half:
    """Make control charts (count, 60, 1): normal, cyclic, rising, falling, shifted up and shifted down."""
    labels, generator = _start(count, 6, seed + 70)
    t = torch.arange(60).float()
    noise = 6 * (2 * torch.rand(count, 60, generator=generator) - 1)
    size, period, slope, jump, moment = (torch.rand(count, 1, generator=generator) for _ in range(5))
    cycle = (10 + 5 * size) * torch.sin(2 * math.pi * t / (10 + 5 * period))
    trend = (0.2 + 0.3 * slope) * t
    shift = (7.5 + 12.5 * jump) * (t > 20 + 20 * moment)
    shapes = torch.stack([torch.zeros(count, 60), cycle, trend, -trend, shift, -shift])
    return (30 + noise + shapes[labels, torch.arange(count)]).unsqueeze(-1), labels


def make_recall(count: int, seed: int) -> Half:
    """Make noise (count, 40, 5) with a mark in one of four channels within the first five steps: the class."""
    generator = torch.Generator().manual_seed(seed + 40)
    labels = torch.randint(4, (count,), generator=generator)
    x = 0.3 * torch.randn(count, 40, 5, generator=generator)
    x[torch.arange(count), torch.randint(0, 5, (count,), generator=generator), labels] += 1
    x[:, -1, 4] += 1
    return x, labels


def make_sums(count: int, seed: int) -> Half:
    """Make numbers and marks (count, 30, 2); the class is whether the two marked numbers sum to more than 1."""
    generator = torch.Generator().manual_seed(seed + 50)
    numbers, marks = torch.rand(count, 30, generator=generator), torch.zeros(count, 30)
    first, second = (torch.randint(low, low + 15, (count,), generator=generator) for low in (0, 15))
    rows = torch.arange(count)
    marks[rows, first] = marks[rows, second] = 1
    return torch.stack([numbers, marks], -1), (numbers[rows, first] + numbers[rows, second] > 1).long()


def make_cylinders_bells_funnels(count: int, seed: int) -> Half:
    """Make Saito's shapes (count, 128, 1): a plateau, a ramp up or a ramp down, at a random place in noise."""
    labels, generator = _start(count, 3, seed + 100)
    t = torch.arange(128).float()
    begin = torch.randint(16, 33, (count, 1), generator=generator)
    length = torch.randint(32, 97, (count, 1), generator=generator)
    height = 6 + torch.randn(count, 1, generator=generator)
    share = (t - begin) / length
    shape = torch.stack([torch.ones(count, 128), share, 1 - share])[labels, torch.arange(count)]
    inside = (share >= 0) & (share <= 1)
    return (height * shape * inside + torch.randn(count, 128, generator=generator)).unsqueeze(-1), labels


def make_autoregressions(count: int, seed: int) -> Half:
    """Make AR(2) noise (count, 50, 1) with a resonance at one of three frequencies."""
    labels, generator = _start(count, 3, seed + 110)
    angle = torch.tensor([0.5, 0.9, 1.4])[labels]
    noise = torch.randn(count, 80, generator=generator)
    x = [torch.zeros(count), torch.zeros(count)]
    for t in range(80):
        x.append(1.7 * torch.cos(angle) * x[-1] - 0.7225 * x[-2] + noise[:, t])
    return torch.stack(x[-50:], 1).unsqueeze(-1), labels


def make_chirps(count: int, seed: int) -> Half:
    """Make noisy oscillations (count, 64, 1) whose frequency rises, falls or stays."""
    labels, generator = _start(count, 3, seed + 120)
    t = torch.arange(64) / 64
    phase, start = (torch.rand(count, 1, generator=generator) for _ in range(2))
    change = torch.tensor([4.0, -4.0, 0.0])[labels].unsqueeze(1)
    turns = phase + (6 + 2 * start - change / 2) * t + change * t.square() / 2
    return (torch.sin(2 * math.pi * turns) + 0.3 * torch.randn(count, 64, generator=generator)).unsqueeze(-1), labels


def make_event_orders(count: int, seed: int) -> Half:
    """Make noise (count, 40, 2) with two pulses, each in one of the channels; the class is both channels in order."""
    labels, generator = _start(count, 4, seed + 130)
    x, rows = 0.2 * torch.randn(count, 40, 2, generator=generator), torch.arange(count)
    for event, low in ((labels // 2, 2), (labels % 2, 20)):
        x[rows, torch.randint(low, low + 15, (count,), generator=generator), event] += 1.5
    return x, labels


def make_strokes(count: int, seed: int) -> Half:
    """Make velocities of a pen (count, 40, 2) along one of five closed or open curves, at an uneven speed."""
    labels, generator = _start(count, 5, seed + 140)
    speed = torch.rand(count, 41, generator=generator).cumsum(1)
    s = 2 * math.pi * speed / speed[:, -1:]
    x = torch.stack([s.cos(), s.sin(), (2 * s).sin(), s / math.pi - 1, (3 * s).cos()])
    y = torch.stack([s.sin(), (2 * s).sin(), s.cos(), (2 * s).cos(), (2 * s).sin()])
    path = torch.stack([x, y], -1)[labels, torch.arange(count)]
    turn = 0.3 * torch.randn(count, 1, generator=generator)
    (x, y), cosine, sine = path.unbind(-1), turn.cos(), turn.sin()
    turned = torch.stack([cosine * x - sine * y, sine * x + cosine * y], -1)
    return turned.diff(dim=1) + 0.05 * torch.randn(count, 40, 2, generator=generator), labels


def make_spirals(count: int, seed: int) -> Half:
    """Make noisy paths (count, 40, 2) that turn left or right, inwards or outwards."""
    labels, generator = _start(count, 4, seed + 150)
    t = torch.arange(40) / 40
    turns, phase, size = (torch.rand(count, 1, generator=generator) for _ in range(3))
    sign, out = (2 * (labels % 2) - 1).unsqueeze(1), (labels // 2).unsqueeze(1)
    radius = (0.7 + 0.6 * size) * (0.5 + 0.5 * torch.where(out == 1, t, 1 - t))
    angle = 2 * math.pi * (phase + sign * (1 + turns) * t)
    path = torch.stack([radius * angle.cos(), radius * angle.sin()], -1)
    return path + 0.1 * torch.randn(count, 40, 2, generator=generator), labels


def make_lorenz(count: int, seed: int) -> Half:
    """Make x of the Lorenz system (count, 60, 1), every 0.05, at one of three values of rho, scaled to variance 1."""
    labels, generator = _start(count, 3, seed + 160)
    rho = torch.tensor([26.0, 45.0, 80.0])[labels]
    x, y, z = (5 * torch.randn(count, generator=generator) + start for start in (0, 0, 25))
    readings = []
    for step in range(1400):
        x, y, z = x + 0.005 * 10 * (y - x), y + 0.005 * (x * (rho - z) - y), z + 0.005 * (x * y - 8 / 3 * z)
        if step >= 800 and step % 10 == 0:
            readings.append(x)
    path = torch.stack(readings, 1)
    scaled = path / path.std(1, keepdim=True)
    return (scaled + 0.1 * torch.randn(count, 60, generator=generator)).unsqueeze(-1), labels


def make_linear_systems(count: int, seed: int) -> Half:
    """Make readings (count, 30, 12) of one of three random linear systems of six states, driven by noise."""
    labels, generator = _start(count, 3, seed + 170)
    fixed = torch.Generator().manual_seed(171)
    turns = torch.linalg.qr(torch.randn(3, 6, 6, generator=fixed)).Q
    sensors = torch.randn(6, 12, generator=fixed)
    h, readings = torch.randn(count, 6, generator=generator), []
    for _ in range(30):
        h = 0.9 * torch.einsum("bi,bij->bj", h, turns[labels]) + 0.4 * torch.randn(count, 6, generator=generator)
        readings.append(h @ sensors + 0.5 * torch.randn(count, 12, generator=generator))
    return torch.stack(readings, 1), labels


def make_gestures(count: int, seed: int) -> Half:
    """Make accelerations (count, 50, 3) of six gestures: each a fixed pair of sines per axis, stretched and noisy."""
    labels, generator = _start(count, 6, seed + 180)
    fixed = torch.Generator().manual_seed(181)
    weights, phases = torch.randn(6, 3, 2, generator=fixed), 2 * math.pi * torch.rand(6, 3, 2, generator=fixed)
    stretch, size = (0.8 + 0.4 * torch.rand(count, 1, 1, 1, generator=generator) for _ in range(2))
    t = (torch.arange(50) / 50).view(1, 50, 1, 1) * stretch
    sines = torch.sin(2 * math.pi * t * torch.tensor([1.0, 2.0]) + phases[labels].unsqueeze(1))
    x = size.squeeze(-1) * (weights[labels].unsqueeze(1) * sines).sum(-1)
    return x + 0.5 * torch.randn(count, 50, 3, generator=generator), labels
