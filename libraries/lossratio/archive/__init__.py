"""The archive: one place that the results of all testbeds go to, a folder or an object store.

Below its URL there are two trees, both partitioned as Hive does: ``history/``, Parquet files with a row per quantity,
which `lossratio.history`, Spark, Trino and DuckDB read as they are; and ``runs/``, every run's directory in whole.
"""
