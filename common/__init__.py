"""Commands, and what they are made of.

A command's modules take a moment to import, torch some seconds: an interrupt meanwhile is no
traceback either.
"""

from . import interrupts

interrupts.stop_quietly()
