"""The Open Traffic Generator (OTG): lossratio drives its testers, and is one itself for scripts of snappi."""
