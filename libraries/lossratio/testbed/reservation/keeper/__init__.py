"""The program that keeps a reservation on the TG node. It needs nothing but Python 3.8 or later on Linux.

`lossratio.testbed.reservation.conversation` sends these modules over the wire, in the order of `MODULES`, and runs the
last.
"""

MODULES = ("record", "fence", "main")
"""The modules, each after those that it imports."""
