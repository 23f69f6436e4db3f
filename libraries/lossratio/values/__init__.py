"""What values may be: units, quantities of requests, records of files, arguments, and words for what is wrong."""
