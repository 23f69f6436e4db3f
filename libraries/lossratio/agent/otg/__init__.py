# SPDX-License-Identifier: Apache-2.0
"""The program that speaks to a tester of the Open Traffic Generator over REST. It needs bare Python only."""

from ..core.generator import made_with_keywords
from .generator import OtgGenerator

make_generator = made_with_keywords(OtgGenerator)
