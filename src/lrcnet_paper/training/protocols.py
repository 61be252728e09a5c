"""Protocols of runs: which version of an experiment a run follows, and in which results an older one is out of date.

Runs of different protocols are different experiments: they have different folders and are never averaged. Results of
an older protocol stay readable, and every page that leaves them out gives the reason.
"""

from __future__ import annotations

from dataclasses import dataclass

FIRST, SECOND = 1, 2


@dataclass(frozen=True)
class Revision:
    """A change of an experiment towards the one that its authors describe.

    Attributes:
        tasks: tasks that changed; () for all.
        models: models that changed; () for all.
        before: how the first protocol differed from that experiment.
    """

    before: str
    tasks: tuple[str, ...] = ()
    models: tuple[str, ...] = ()

    def concerns(self, task: str, model: str) -> bool:
        """Tell whether the runs of a model on a task changed."""
        return (not self.tasks or task in self.tasks) and (not self.models or model in self.models)


REVISIONS = (
    Revision(
        "the Neural ODE was tested by Euler steps although it is trained by Dormand-Prince, the maps of an LRC field "
        "started from torch's own values instead of Glorot's, and the MLP's normal distribution was not cut",
        tasks=("neural-ode",),
    ),
    Revision(
        "GRU was torch's, whose reset gate acts after the matrix product, with an orthogonal recurrent kernel instead "
        "of one Glorot kernel over [x, h] per gate",
        models=("gru",),
    ),
    Revision(
        "MGU had an orthogonal recurrent kernel instead of one Glorot kernel over [x, h] per gate",
        models=("mgu",),
    ),
    Revision(
        "the head's last layer was 8 times too large at the start, an LRCU could not express the sharpest labels at "
        "initial values, and gradients were not clipped",
        tasks=("driving",),
    ),
    Revision(
        "GRU-D's reset gate acted after the matrix product, and the decays of its missing inputs and of about half of "
        "its units started where their gradient is 0",
        models=("gru-d",),
    ),
    Revision(
        "a gap was only a decay of GRU-D's state and no input, so that it could not tell the duration of a first event",
        tasks=("xor", "thinned", "event-mnist"),
        models=("gru-d",),
    ),
)
"""Every change between the first and the second protocol."""


def current_protocol(task: str, model: str) -> int:
    """Return the number of the protocol by which a model is trained on a task today."""
    return SECOND if any(revision.concerns(task, model) for revision in REVISIONS) else FIRST


def reasons_out_of_date(task: str, model: str, protocol: int) -> list[str]:
    """List how a run of this protocol differs from the experiment as we run it today; [] if it does not."""
    if protocol == current_protocol(task, model):
        return []
    return [revision.before for revision in REVISIONS if revision.concerns(task, model)]
