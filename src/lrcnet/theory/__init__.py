"""The paper's theorems as code: Lipschitz and generalisation bounds that a user can compute."""

from lrcnet.contraction import contraction_factor
from lrcnet.theory.associated import Associated, Certificate, associated_lrc, certify
from lrcnet.theory.bounds import LipschitzBound, lipschitz_bound
from lrcnet.theory.damping import Damping, damping
from lrcnet.theory.domain import Domain
from lrcnet.theory.empirical import EmpiricalLipschitz, empirical_lipschitz, visited_points
from lrcnet.theory.generalisation import GeneralisationBound, generalisation_bound

__all__ = [
    "Associated",
    "Certificate",
    "Damping",
    "Domain",
    "EmpiricalLipschitz",
    "GeneralisationBound",
    "LipschitzBound",
    "associated_lrc",
    "certify",
    "contraction_factor",
    "damping",
    "empirical_lipschitz",
    "generalisation_bound",
    "lipschitz_bound",
    "visited_points",
]
