"""Whether a policy games its reward: signals over scored responses, a change detector for each, and alarms. Torch-free."""

from .detector import Payment, Rise
from .follower import Alarm
from .held_out import Gap, HeldOut
from .signals import Scored
from .watch import Watch

__all__ = ["Alarm", "Gap", "HeldOut", "Payment", "Rise", "Scored", "Watch"]
