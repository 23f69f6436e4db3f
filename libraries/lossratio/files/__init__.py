"""What there is on this machine: input files, files that come with lossratio, other packages and programs."""
