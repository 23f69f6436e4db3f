from __future__ import annotations

import errno
import io
import os
import shutil
import tarfile
from datetime import datetime, timezone
from pathlib import Path
from threading import Thread

import duckdb
import pytest
from archive_examples import measure
from click.testing import CliRunner

from lossratio.commands.main import commands
from lossratio.commands.night import fetch, send
from lossratio.commands.trend import trend
from lossratio.errors import ArchiveError, ReportError, StorageError
from lossratio.report.history.archive import ObjectStore, Outbox, fetch_newest, mirror_history, put_annotations
from lossratio.report.run import read_run
from lossratio.results.run_directory import RunDirectory, read_result

DAY = datetime(2026, 3, 1, tzinfo=timezone.utc)


@pytest.fixture
def store(tmp_path):
    return ObjectStore(str(tmp_path / "archive"))


@pytest.fixture
def outbox(tmp_path, store):
    return Outbox(tmp_path / "outbox", store)


def test_a_run_goes_to_its_testbed_and_date_in_whole(run, outbox, store, tmp_path):
    assert outbox.add(run) == []
    assert outbox.send() == 2
    assert outbox.waiting() == []
    (packed,) = store.names("runs/testbed=simulated/date=*/*.tar.gz")
    store.get(packed, tmp_path / "back.tar.gz")
    with tarfile.open(tmp_path / "back.tar.gz") as archive:
        archive.extractall(tmp_path / "back", filter="data")
    assert read_run(tmp_path / "back" / "tonight").results == read_run(run).results


def test_the_history_is_read_by_duckdb_as_it_is(run, outbox, store):
    outbox.add(run)
    outbox.send()
    files = f"{store.url}/history/*/*/*.parquet"
    rows = duckdb.read_parquet(files, hive_partitioning=True).select("testbed", "test", "value").fetchall()
    (result,) = read_run(run).results
    value = result.goals[0].result.conditional_throughput.aggregate_fps
    assert rows == [("simulated", result.test.full_name, value)]


def test_sending_the_same_run_twice_changes_nothing(run, outbox, store):
    for _ in range(2):
        outbox.add(run)
        outbox.send()
    assert len(store.names("runs/**/*.tar.gz")) == len(store.names("history/**/*.parquet")) == 1


def test_two_processes_that_send_one_outbox_send_each_file_once(run, outbox, store, monkeypatch):
    outbox.add(run)
    puts, counts = [], []
    put = ObjectStore.put

    def put_slowly(store, path, name):
        if not puts:
            other.start()
            other.join(0.5)
        puts.append(name)
        put(store, path, name)

    # Each opening of the folder has a lock of its own, as in another process.
    other = Thread(target=lambda: counts.append(outbox.send()))
    monkeypatch.setattr(ObjectStore, "put", put_slowly)
    counts.append(outbox.send())
    other.join()
    assert sorted(counts) == [0, 2]
    assert len(puts) == len(set(puts)) == 2
    assert outbox.waiting() == []


def test_an_archive_that_cannot_be_reached_loses_nothing(run, tmp_path):
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where a folder is needed")
    outbox = Outbox(tmp_path / "outbox", ObjectStore(str(blocked / "archive")))
    outbox.add(run)
    with pytest.raises(ArchiveError, match="does not take runs/testbed=simulated"):
        outbox.send()
    assert len(outbox.waiting()) == 2
    blocked.unlink()
    assert outbox.send() == 2
    assert outbox.waiting() == []


def test_a_full_archive_keeps_no_part_of_a_file_and_the_way_out_is_named(run, tmp_path, monkeypatch):
    archive = tmp_path / "archive"
    fsync = os.fsync

    def full_disk(file):
        if os.readlink(f"/proc/self/fd/{file}").startswith(str(archive)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(file)

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with monkeypatch.context() as full:
        full.setattr(os, "fsync", full_disk)
        answer = CliRunner().invoke(commands, ["archive", "send", str(run), "--results", str(archive)])
    waiting = Outbox.of(str(archive))
    said = str(answer.exception)
    assert said.startswith(f"{archive} does not take runs/testbed=simulated/date=2026-")
    assert said.endswith(
        f".tar.gz: No space left on device. Free some space there. 2 files wait in {waiting.path} until a later run, "
        f"or this command, sends them: lossratio archive send --results {archive}"
    )
    assert [path for path in archive.rglob("*") if path.is_file()] == []
    assert waiting.send() == 2


def test_the_next_sender_sends_waiting_runs_too(run, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    archive = tmp_path / "archive"
    Outbox.of(str(archive)).add(run)
    another = measure(tmp_path / "another", name="another test")
    result = CliRunner().invoke(send, [str(another), "--results", str(archive)], catch_exceptions=False)
    assert result.stdout.splitlines()[0] == f"Sent 4 files to {archive}."


def test_what_waits_for_a_relative_path_is_not_sent_to_the_same_path_in_another_directory(run, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    here, there = tmp_path / "here", tmp_path / "there"
    for directory in (here, there):
        directory.mkdir()
    monkeypatch.chdir(here)
    Outbox.of("archive").add(run)
    assert len(Outbox.of("./archive").waiting()) == 2
    monkeypatch.chdir(there)
    assert Outbox.of("archive").waiting() == []
    assert len(Outbox.of(str(here / "archive")).waiting()) == 2


def test_a_path_that_is_no_run_is_refused(outbox, tmp_path):
    with pytest.raises(ReportError, match="is not the directory of a run"):
        outbox.add(tmp_path)


@pytest.mark.whole
def test_a_mirror_fetches_what_is_new_once_and_forgets_what_is_gone(run, outbox, store, tmp_path):
    outbox.add(run)
    outbox.send()
    cache = tmp_path / "cache"
    history = mirror_history(store, cache)
    assert history.read().table.num_rows == 1
    (file,) = cache.rglob("*.parquet")
    first_fetched = file.stat().st_mtime_ns
    outbox.add(measure(tmp_path / "another", name="another test"))
    outbox.send()
    assert mirror_history(store, cache).read().table.num_rows == 2
    assert file.stat().st_mtime_ns == first_fetched
    shutil.rmtree(f"{store.url}/history")
    outbox.add(run)
    outbox.send()
    assert mirror_history(store, cache).read().table.num_rows == 1


def test_a_mirror_leaves_the_files_alone_that_another_process_is_fetching(run, outbox, store, tmp_path):
    outbox.add(run)
    outbox.send()
    cache = tmp_path / "cache"
    mirror_history(store, cache)
    (file,) = cache.rglob("*.parquet")
    part = file.with_name(f".{file.name}.0123abcd.part")
    part.write_bytes(b"PAR1")
    assert mirror_history(store, cache).read().table.num_rows == 1
    assert part.exists()


def test_a_name_in_an_archive_never_leads_out_of_its_mirror(run, outbox, store, tmp_path, monkeypatch):
    outbox.add(run)
    outbox.send()
    (tmp_path / "evil.parquet").write_bytes(b"evil")
    evil = ["history/../../up/evil.parquet", "history//tmp/evil.parquet", "history/testbed=x/date=../../evil.parquet"]
    named, asked = ObjectStore.names, []
    monkeypatch.setattr(ObjectStore, "names", lambda *arguments: [*named(*arguments), *evil])
    monkeypatch.setattr(ObjectStore, "get", lambda _, name, file: asked.append((name, file)))
    mirror_history(store, tmp_path / "cache" / "mirror")
    assert len(asked) == 1
    assert not set(evil) & {name for name, _ in asked}


def test_known_changes_go_to_the_archive_and_are_gone_with_it(run, outbox, store, tmp_path):
    outbox.add(run)
    outbox.send()
    mirror = mirror_history(store, tmp_path / "mirror")
    (mirror.path / "annotations.yaml").write_text("changes: []\n")
    put_annotations(store.url, mirror)
    other = mirror_history(store, tmp_path / "other")
    assert (other.path / "annotations.yaml").read_text() == "changes: []\n"
    (tmp_path / "archive" / "history" / "annotations.yaml").unlink()
    mirror_history(store, tmp_path / "other")
    assert not (other.path / "annotations.yaml").exists()


SECRET = "wJalrXUtn/K7MD+bPx"
WITH_SECRETS = [
    f"s3://AKIAEXAMPLE:{SECRET}@bucket/path",
    f"s3://{SECRET.replace('/', '')}@bucket",
    f"simplecache::s3://AKIAEXAMPLE:{SECRET}@bucket",
    f"sftp://ann:{SECRET}@host:2222/path",
    f"https://account.blob.core.example/container?sig={SECRET}",
    f"abfs://container:{SECRET}@account.dfs.core.example/path",
    f"s3:AKIAEXAMPLE:{SECRET}@bucket",
    f"s3:/AKIAEXAMPLE:{SECRET}@bucket/path",
    f"//AKIAEXAMPLE:{SECRET}@bucket",
    f"AKIAEXAMPLE:{SECRET}@s3://bucket",
    f"gs://AKIAEXAMPLE%3A{SECRET}%40bucket",
]


@pytest.mark.parametrize("url", WITH_SECRETS)
@pytest.mark.parametrize(
    "line",
    [
        ("archive", "send", "--results", "URL"),
        ("archive", "fetch", "out", "--testbed", "t", "--results", "URL"),
        ("trend", "URL"),
        ("archive", "ack", "URL", "because"),
    ],
    ids=lambda line: line[0],
)
def test_an_address_with_secrets_is_refused_and_not_shown(url, line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(commands, [word.replace("URL", url) for word in line])
    assert str(result.exception).startswith("The address of an archive must not have a user, a password or a query")
    shown = f"{result.output}{result.exception!r}"
    assert not [word for word in ("AKIA", "wJalr", "7MD") if word in shown]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "url",
    [
        "s3://bucket/a@b",
        "abfs://container@account.dfs.core.example/path",
        "gs://bucket",
        "/srv/a:b@c",
        "file:///srv/a@b",
    ],
)
def test_other_addresses_are_taken(url):
    assert ObjectStore(url).url == url


def test_an_archive_without_history_says_so(store):
    (Path(store.url) / "runs").mkdir(parents=True)
    with pytest.raises(ReportError, match="has no history yet"):
        mirror_history(store)


@pytest.mark.parametrize("address", ["{}", "file://{}"])
def test_a_mistyped_address_is_no_archive(tmp_path, monkeypatch, address):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    url = address.format(tmp_path / "archiv")
    commands = [
        (fetch, [str(tmp_path / "before"), "--results", url, "--testbed", "simulated"]),
        (send, ["--results", url]),
        (trend, [url]),
    ]
    for command, arguments in commands:
        with pytest.raises(ReportError, match=r"no archive (at .* yet|there yet).* Correct the (address|path), or"):
            CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert not (tmp_path / "archiv").exists()


def test_before_a_first_night_there_is_nothing_to_fetch(tmp_path):
    arguments = ["--results", str(tmp_path / "archive"), "--testbed", "simulated", "--may-be-new"]
    result = CliRunner().invoke(fetch, [str(tmp_path / "before"), *arguments], catch_exceptions=False)
    assert (result.exit_code, result.stdout) == (0, "")


def test_the_first_run_that_is_sent_begins_an_archive_and_says_so(run, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    archive = tmp_path / "archive"
    first, second = (CliRunner().invoke(send, [str(run), "--results", str(archive)]).output for _ in range(2))
    said = f"There was no archive at {archive}: it was created with these files."
    assert first.splitlines() == [f"Sent 2 files to {archive}.", said]
    assert second.splitlines() == [f"Sent 2 files to {archive}."]


def test_an_unknown_kind_of_store_is_an_error_that_names_the_package():
    with pytest.raises(ArchiveError, match="nowhere://bucket"):
        ObjectStore("nowhere://bucket").names("*")


def test_the_trend_of_an_archive_is_computed_from_its_url(run, outbox, store, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    outbox.add(run)
    outbox.send()
    result = CliRunner().invoke(trend, [f"file://{store.url}"], catch_exceptions=False)
    assert result.exit_code == 4
    assert "1 series of 1 result:" in result.output


def test_runs_are_not_added_to_an_archive_by_the_trend(run, store):
    result = CliRunner().invoke(trend, [f"file://{store.url}", "--add", str(run)])
    assert "lossratio archive send" in result.output


def test_the_newest_runs_come_back_to_be_compared(run, outbox, store, tmp_path):
    outbox.add(run)
    outbox.send()
    arguments = [str(tmp_path / "before"), "--results", store.url, "--testbed", "simulated", "--newest", "3"]
    for _ in range(2):
        result = CliRunner().invoke(fetch, arguments, catch_exceptions=False)
        (directory,) = result.output.splitlines()
        assert read_run(Path(directory)).results == read_run(run).results
    assert [path.name for path in (tmp_path / "before").iterdir()] == [Path(directory).name]


def test_the_newest_run_of_a_day_is_the_one_that_began_last(run, outbox, store, tmp_path):
    (file,) = (run / "results").glob("*.json")
    result = read_result(file)
    for hour in (22, 3, 14):
        changed = {"started": DAY.replace(hour=hour), "ended": DAY.replace(hour=hour, minute=30)}
        RunDirectory(run).write(result.model_copy(update=changed))
        outbox.add(run)
    outbox.send()
    fetched = fetch_newest(store, "simulated", 2, tmp_path / "before")
    assert [read_run(path).results[0].started.hour for path in fetched] == [14, 22]


def test_a_testbed_that_was_never_measured_has_no_newest_run(run, outbox, store, tmp_path):
    outbox.add(run)
    outbox.send()
    assert fetch_newest(store, "another", 1, tmp_path / "before") == []
    arguments = [str(tmp_path / "before"), "--results", store.url, "--testbed", "another"]
    result = CliRunner().invoke(fetch, arguments, catch_exceptions=False)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"{store} has no runs of testbed another yet.\n"


def without_members(packed):
    file = io.BytesIO()
    tarfile.open(fileobj=file, mode="w:gz").close()
    return file.getvalue()


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda packed: b"not a tar file", "could not be opened"),
        (lambda packed: packed[:-200], "Compressed file ended"),
        (without_members, "it does not contain the directory of one run"),
    ],
)
def test_a_damaged_run_in_the_archive_is_an_error_that_names_it(run, outbox, store, tmp_path, damage, why):
    outbox.add(run)
    outbox.send()
    (name,) = store.names("runs/**/*.tar.gz")
    packed = Path(store.url, name)
    packed.write_bytes(damage(packed.read_bytes()))
    with pytest.raises(ArchiveError, match=rf"tar\.gz is damaged: .*{why}"):
        fetch_newest(store, "simulated", 1, tmp_path / "before")
    assert list((tmp_path / "before").iterdir()) == []


def with_link(packed: bytes) -> bytes:
    file = io.BytesIO()
    link = tarfile.TarInfo("run/link")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc"
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        archive.addfile(link)
    return file.getvalue()


def with_name_above(packed: bytes) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        archive.addfile(tarfile.TarInfo("../above"))
    return file.getvalue()


@pytest.mark.parametrize("damage", [None, with_link, with_name_above])
def test_an_early_python_3_11_also_unpacks_a_run_and_nothing_outside_of_it(
    run, outbox, store, tmp_path, monkeypatch, damage
):
    monkeypatch.delattr(tarfile, "data_filter")
    outbox.add(run)
    outbox.send()
    (name,) = store.names("runs/**/*.tar.gz")
    packed = Path(store.url, name)
    if damage is None:
        (fetched,) = fetch_newest(store, "simulated", 1, tmp_path / "before")
        assert read_run(fetched).results == read_run(run).results
        return
    packed.write_bytes(damage(packed.read_bytes()))
    with pytest.raises(ArchiveError, match=r"tar\.gz is damaged: .* does not belong in it"):
        fetch_newest(store, "simulated", 1, tmp_path / "before")
    assert list((tmp_path / "before").iterdir()) == []


def test_a_full_disk_is_no_damage_of_the_archive(run, outbox, store, tmp_path, monkeypatch):
    outbox.add(run)
    outbox.send()
    monkeypatch.setattr(tarfile.TarFile, "makefile", no_space_left)
    with pytest.raises(StorageError, match=r"Cannot unpack runs to .*before: No space left on device. Free some space"):
        fetch_newest(store, "simulated", 1, tmp_path / "before")
    assert list((tmp_path / "before").iterdir()) == []


def no_space_left(*arguments):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
