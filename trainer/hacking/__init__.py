"""Whether a policy games its reward: signals over scored responses, a change detector for each, and alarms. No module here imports torch."""

from .detector import Payment, Rise
from .held_out import Gap, HeldOut
from .signal_monitor import Alarm
from .signals import RewardedResponse
from .watch import SignalWatch

__all__ = ["Alarm", "Gap", "HeldOut", "Payment", "Rise", "RewardedResponse", "SignalWatch"]
