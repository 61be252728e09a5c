"""Table and figure: the share of each policy's attention on road, horizon, roadside and sky."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from lrcnet.pages import palette
from lrcnet.pages.content import Cell, Picture, Table
from lrcnet_paper.artefacts import driving_runs as driving
from lrcnet_paper.artefacts.artefact import Claim
from lrcnet_paper.artefacts.curves import write_finding
from lrcnet_paper.artefacts.policy_measurements import GATED, SEASONS, judge_against_gated, judge_order
from lrcnet_paper.driving.camera import HORIZON_ROWS, REGIONS
from lrcnet_paper.results.estimate import Estimate, mean_over_seeds

if TYPE_CHECKING:
    from torch import Tensor

    from lrcnet_paper.results.groups import Group

ATTENTION, AREA = "attention", "area"
LRCUS = ("lrcu-a", "lrcu-s")


def measure_shares(maps: Tensor, regions: Tensor) -> dict[str, dict[str, float]]:
    """Return the share of attention on each region of some frames, and the share of pixels in it."""
    import torch

    from lrcnet_paper.interpret.attention import share_by_region

    return {ATTENTION: share_by_region(maps, regions), AREA: share_by_region(torch.ones_like(maps), regions)}


def share(groups: Mapping[str, Group], name: str, model: str, season: str, region: str) -> Estimate | None:
    """Return the mean over seeds of a policy's share of attention on a region; None if it was not measured."""
    group = groups.get(model)
    values = {} if group is None else _by_seed(group, name, season, region)
    return mean_over_seeds(values, digits=3)


def _by_seed(group: Group, name: str, season: str, region: str) -> dict[int, float]:
    return {
        run.result.seed: run.analyses[name]["regions"][season][ATTENTION][region]
        for run in group.runs
        if "regions" in run.analyses[name]
    }


def region_tables(groups: Mapping[str, Group], name: str) -> list[Table]:
    """Tabulate the shares of attention by season and region; return no table if none was measured."""
    measured = _measured(groups, name)
    if not measured:
        return []
    rows: list[tuple[Cell, ...]] = [
        (
            palette.model_label(model),
            *(share(measured, name, model, season, region) for season in SEASONS for region in REGIONS),
        )
        for model in measured
    ]
    areas = next(iter(measured.values())).runs[0].analyses[name]["regions"]
    area = [areas[season][AREA][region] for season in SEASONS for region in REGIONS]
    rows.append(("share of the frame's area", *(Estimate(value, digits=3) for value in area)))
    return [
        Table(
            "regions",
            "Share of the attention on each region of the frame",
            ("model", *(f"{season}: {region}" for season in SEASONS for region in REGIONS)),
            rows,
            "Mean over frames, ± over seeds, without noise; the shares of a season add up to 1. The world knows the "
            f"region of each pixel. The horizon is the band of {HORIZON_ROWS} rows above and below it, where the "
            "ground is more than 40 m away; the road lies between the edges of the asphalt, the roadside beside them. "
            f"{_describe_road(measured, name)}",
        )
    ]


def _describe_road(groups: Mapping[str, Group], name: str) -> str:
    """Set the paper's words on all models but the LSTM beside their smallest and largest share on the road."""
    shares = {m: e.mean for m in groups if m != "lstm" and (e := share(groups, name, m, "summer", "road")) is not None}
    if not shares:
        return ""
    least, most = min(shares, key=lambda m: shares[m]), max(shares, key=lambda m: shares[m])
    return (
        "The paper says that in summer all models but the LSTM have most of their attention on the road; here "
        f"{sum(value > 0.5 for value in shares.values())} of {len(shares)} such models have more than half of it there "
        f"({_percent(least, shares)} to {_percent(most, shares)})."
    )


def _percent(model: str, shares: Mapping[str, float]) -> str:
    return f"{palette.model_label(model)} {100 * shares[model]:.0f} %"


def _measured(groups: Mapping[str, Group], name: str) -> dict[str, Group]:
    return {m: group for m, group in groups.items() if any("regions" in run.analyses[name] for run in group.runs)}


def region_claims(groups: Mapping[str, Group], name: str) -> list[Claim]:
    """Judge the paper's words: horizon, roadside and road in summer, roadside in winter, and the shift."""
    measured = _measured(groups, name)

    def against_gated(model: str, season: str, region: str, *, more: bool, statement: str, words: str) -> Claim:
        return judge_against_gated(
            f"{season.capitalize()}: {palette.model_label(model)} {statement} than any gated unit.",
            words,
            model,
            measured,
            {m: share(measured, name, m, season, region) for m in (model, *GATED)},
            larger_is_better=more,
        )

    claims = [
        against_gated(
            model,
            "summer",
            "horizon",
            more=True,
            statement="attends to the horizon more",
            words="“especially focus on the horizon”",
        )
        for model in LRCUS
    ]
    claims += [
        against_gated(
            model,
            "winter",
            "roadside",
            more=False,
            statement="attends to the roadside less",
            words="gated units attend to “unimportant regions on the off-road”",
        )
        for model in LRCUS
    ]
    return [*claims, _lstm_claim(measured, name), _road_claim(measured, name), _shift_claim(measured, name)]


def _lstm_claim(groups: Mapping[str, Group], name: str) -> Claim:
    """Judge whether the LSTM attends more to regions beside the road in summer than the LRCUs do on average."""
    lstm = share(groups, name, "lstm", "summer", "roadside")
    others = [groups[m] for m in LRCUS if m in groups]
    mean = _mean_over_models(others, name, "summer", "roadside") if len(others) == len(LRCUS) else None
    compared = [*others, *([groups["lstm"]] if "lstm" in groups else [])]
    return Claim(
        "Summer: the LSTM attends to the roadside more than the LRCUs do.",
        "takes “irrelevant parts of the image” into account",
        "–" if lstm is None or mean is None else f"{lstm} against {mean}",
        judge_order((lstm, mean), driving.conditions(*compared)),
    )


def _mean_over_models(groups: Sequence[Group], name: str, season: str, region: str) -> Estimate | None:
    """Return the mean share of several models over the seeds that all of them have."""
    by_seed = [_by_seed(group, name, season, region) for group in groups]
    common = set.intersection(*(set(values) for values in by_seed)) if by_seed else set()
    return mean_over_seeds({seed: fmean(values[seed] for values in by_seed) for seed in common}, digits=3)


def _road_claim(groups: Mapping[str, Group], name: str) -> Claim:
    """Judge whether the models other than the LSTM have more attention on the road in summer than elsewhere."""
    models = ("gru", "mgu", *LRCUS)
    compared = [groups[m] for m in models if m in groups]
    road = _mean_over_models(compared, name, "summer", "road") if len(compared) == len(models) else None
    elsewhere = None if road is None else mean_over_seeds({seed: 1 - on for seed, on in road.by_seed}, digits=3)
    return Claim(
        "Summer: GRU, MGU and the LRCUs, taken together, have more than half of their attention on the road.",
        "“most of the attention on the road”",
        "–" if road is None else f"{road} on the road against {elsewhere} elsewhere",
        judge_order((road, elsewhere), driving.conditions(*compared)),
    )


def _shift_claim(groups: Mapping[str, Group], name: str) -> Claim:
    """Judge whether the attention of all models together shifts to the roadside in winter."""
    winter, summer = (
        _mean_over_models(list(groups.values()), name, season, "roadside") for season in ("winter", "summer")
    )
    return Claim(
        "Attention shifts to the roadside in winter, over all models.",
        "“from the road to the side of the road”",
        "–" if winter is None or summer is None else f"{winter} in winter against {summer} in summer",
        judge_order((winter, summer), driving.conditions(*groups.values())),
    )


def region_pictures(groups: Mapping[str, Group], name: str) -> list[Picture]:
    """Draw the shares as one bar per model and season; return no picture if none was measured."""
    measured = _measured(groups, name)
    if not measured:
        return []
    picture = Picture(
        "regions",
        "Share of the attention on each region, without noise, mean over seeds; the last bar is the region's share of "
        "the frame's area.",
        "Two panels, summer and winter: one horizontal bar per model, divided into sky, horizon, road and roadside, "
        "with the shares in percent written into it.",
        _draw_regions(measured, name),
    )
    return [picture]


# Not the colours of models, which have a meaning of their own in every figure.
SHADES = {"sky": 0.12, "horizon": 0.85, "road": 0.6, "roadside": 0.3}


def _draw_regions(groups: Mapping[str, Group], name: str) -> Any:
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    rows: Sequence[str] = [*groups, AREA]
    areas = next(iter(groups.values())).runs[0].analyses[name]["regions"]
    with palette.figure_style():
        figure = Figure(figsize=(7.6, 0.36 * len(rows) + 1.8), layout="constrained")
        for panel, season in zip(figure.subplots(1, 2, sharey=True), SEASONS, strict=True):
            for row, model in enumerate(rows):
                left = 0.0
                for region in REGIONS:
                    number = share(groups, name, model, season, region)
                    value = areas[season][AREA][region] if number is None else number.mean
                    panel.barh(row, 100 * value, left=100 * left, color=palette.GREY, alpha=SHADES[region], height=0.7)
                    if value > 0.035:
                        panel.text(
                            100 * (left + value / 2), row, f"{100 * value:.0f}", ha="center", va="center", fontsize=7.5
                        )
                    left += value
            panel.set_yticks(range(len(rows)), [*map(palette.model_label, groups), "area of the frame"])
            panel.set(title=season, xlabel="share of attention (%)", xlim=(0, 100), ylim=(len(rows) - 0.5, -0.5))
            panel.grid(False)
        patches = [Patch(color=palette.GREY, alpha=SHADES[region], label=region) for region in REGIONS]
        figure.legend(handles=patches, loc="outside lower center", ncols=len(patches))
        write_finding(figure, _finding(groups, name))
    return figure


def _finding(groups: Mapping[str, Group], name: str) -> str:
    if note := driving.incomplete(groups):
        return note
    shares = {m: e for m in groups if (e := share(groups, name, m, "summer", "horizon")) is not None}
    most = max(shares, key=lambda m: shares[m].mean)
    return (
        f"In summer {palette.model_label(most)} has the largest share of attention at the horizon "
        f"({100 * shares[most].mean:.0f} %{driving.within_spread(shares, largest=True)}){driving.too_few_seeds(groups)}"
    )
