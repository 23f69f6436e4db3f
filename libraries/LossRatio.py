"""The keyword library by its short name: ``Library    LossRatio`` in a suite."""

from lossratio.keywords import LossRatio as LossRatio
