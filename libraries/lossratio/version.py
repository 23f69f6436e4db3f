"""The version of lossratio."""

__version__ = "0.3.0"
