"""The networks that are trained on the tasks: `build` makes one from a model name and a task.

`MODELS` lists the names; solver and unfoldings are given beside a name, as a string such as "hybrid-6".
"""

from lrcnet.models import Classifier, Tagger
from lrcnet_paper.models.builders import BUILDERS, MODELS, build, parameter_count
from lrcnet_paper.models.ode import FIELDS
from lrcnet_paper.models.policy import Policy
from lrcnet_paper.models.recurrent import RECURRENT, parse_solver

__all__ = [
    "BUILDERS",
    "FIELDS",
    "MODELS",
    "RECURRENT",
    "Classifier",
    "Policy",
    "Tagger",
    "build",
    "parameter_count",
    "parse_solver",
]
