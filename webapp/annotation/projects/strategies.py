"""The orders in which tasks can be served, in words; a manager chooses one."""

from collections.abc import Mapping

from ..models import Project

Strategy = Project.Strategy

STRATEGIES: Mapping[str, str] = {
    Strategy.ORDER: "In the order of the dataset, from top to bottom.",
    Strategy.RANDOM: "In one fixed random order, so that the first answers represent the whole dataset.",
    Strategy.UNCERTAINTY: "Tasks whose known preferences are closest to a tie come first.",
    Strategy.DISAGREEMENT: "Tasks on which people and the judge disagree come first.",
}
