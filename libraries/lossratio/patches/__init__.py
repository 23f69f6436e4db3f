"""Judging builds of a SUT on a testbed: two builds interleaved, and the revision that changed a test's throughput."""
