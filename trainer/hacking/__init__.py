"""Whether a policy games its reward: signals over scored responses, a change detector for each, and alarms. No module here imports torch."""

from .detector import Payment, Rise
from .follower import Alarm
from .held_out import Gap, HeldOut
from .signals import RewardedResponse
from .watch import SignalWatch

__all__ = ["Alarm", "Gap", "HeldOut", "Payment", "Rise", "RewardedResponse", "SignalWatch"]
