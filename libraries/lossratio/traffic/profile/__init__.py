"""Traffic profiles: their files, the headers and sizes of frames, and their translation for generators and reports."""
