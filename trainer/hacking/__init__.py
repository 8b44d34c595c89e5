"""Whether a policy games its reward: signals over scored responses, a change detector for each, and alarms. Torch-free."""

from .detector import Payment, Rise
from .follower import Alarm
from .signals import Scored
from .watch import Watch

__all__ = ["Alarm", "Payment", "Rise", "Scored", "Watch"]
