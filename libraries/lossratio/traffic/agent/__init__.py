"""The traffic agent: the program that runs on the TG node.

It needs nothing there but Python 3.8 or later (and what its generators need: numpy for `afpacket`). The controller's
side packs this package into one file, so it imports nothing of ours from outside of it.
"""
