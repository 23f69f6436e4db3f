"""The version of lossratio."""

__version__ = "0.2.0"
