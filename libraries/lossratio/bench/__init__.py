"""What a person asks for, put together from the parts: a testbed to measure on, and measurements that use it."""
