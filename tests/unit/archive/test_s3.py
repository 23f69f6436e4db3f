"""The archive on a real S3 server of this machine."""

from __future__ import annotations

import pytest
from ports import refusing_port

from lossratio.errors import ArchiveError
from lossratio.report.history.archive import ObjectStore, Outbox, mirror_history


@pytest.fixture
def direct_to(monkeypatch):
    """Directs s3fs to the server on a port of this machine."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    # s3fs reads such variables when it is imported, which other tests may have done.
    import fsspec.config
    import s3fs

    def direct(port):
        endpoint = f"http://127.0.0.1:{port}"
        monkeypatch.setenv("FSSPEC_S3_ENDPOINT_URL", endpoint)
        fsspec.config.set_conf_env(fsspec.config.conf)
        s3fs.S3FileSystem.clear_instance_cache()
        return endpoint

    yield direct
    fsspec.config.conf.pop("s3", None)
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.fixture
def bucket(direct_to):
    # Each process collects these tests, and loading takes a second.
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    boto3.client("s3", endpoint_url=direct_to(port)).create_bucket(Bucket="nights")
    yield "s3://nights/lossratio"
    server.stop()


@pytest.mark.whole
def test_a_run_goes_to_an_object_store_and_its_history_comes_back(run, bucket, tmp_path):
    outbox = Outbox(tmp_path / "outbox", ObjectStore(bucket))
    outbox.add(run)
    assert not outbox.store.is_archive()
    assert outbox.send() == 2
    assert outbox.store.is_archive()
    assert mirror_history(ObjectStore(bucket), tmp_path / "cache").read().table.num_rows == 1
    assert not [name for name in ObjectStore(bucket).names("**") if name.endswith(".part")]


@pytest.mark.whole
def test_an_object_store_that_is_down_loses_nothing(run, direct_to, tmp_path):
    outbox = Outbox(tmp_path / "outbox", ObjectStore("s3://nights/lossratio"))
    outbox.add(run)
    with refusing_port() as port:
        direct_to(port)
        with pytest.raises(ArchiveError, match="s3://nights/lossratio does not take runs/"):
            outbox.send()
    assert len(outbox.waiting()) == 2
