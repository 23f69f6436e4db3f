"""What a nightly runs: job files, how long they will take, and how they are spread over testbeds."""
