"""The Open Traffic Generator (OTG): the generators of lossratio behind its REST interface."""
