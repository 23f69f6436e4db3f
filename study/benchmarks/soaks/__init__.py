"""Devices and real frames for `soak.py`."""
