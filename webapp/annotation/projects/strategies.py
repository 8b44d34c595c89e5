"""What a manager chooses from beside the kinds of task: the order that tasks are served in, in words."""

from collections.abc import Mapping

from ..models import Project

Strategy = Project.Strategy

STRATEGIES: Mapping[str, str] = {
    Strategy.ORDER: "Everybody walks through the dataset from top to bottom.",
    Strategy.RANDOM: "One fixed shuffle, so that what is done first says something about the whole.",
    Strategy.UNCERTAINTY: "Where known preferences are closest to a tie comes first.",
    Strategy.DISAGREEMENT: "Where people and the judge have disagreed comes first.",
}
