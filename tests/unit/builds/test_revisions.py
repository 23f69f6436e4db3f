from __future__ import annotations

import pytest
from patches_examples import git, make_repository, set_up_revision, write_lab

from lossratio.errors import BuildError
from lossratio.runs.builds import revisions_between


@pytest.fixture
def lab(tmp_path):
    return write_lab(tmp_path)


@pytest.fixture
def run_bisect(lossratio):
    def run(lab, good, bad, *more, test="64B-mrr"):
        repository = lab.parent / "repository"
        options = ["--good", good, "--bad", bad, "--repository", repository, "--topology", lab]
        options += ["--set-up", set_up_revision(repository, lab), "--output", lab.parent / "bisect", *more]
        if test is not None:
            options += ["--test", test]
        return lossratio("builds", "bisect", *options, lab.parent / "mrr.robot")

    return run


@pytest.mark.whole
def test_the_revision_that_changed_it_is_named_with_its_subject(lab, run_bisect):
    revisions = make_repository(lab.parent / "repository", [150.0] * 9 + [144.0] * 8)
    result = run_bisect(lab, revisions[0], "main")
    assert result.status == 0
    assert "16 revisions could have changed the throughput" in result.out
    assert "It changed by -4.0" in result.out
    assert result.out.endswith("change 9\n")
    assert len(list((lab.parent / "bisect").glob("0*-*"))) < 14


@pytest.mark.whole
def test_revisions_that_cannot_be_built_are_left_out_and_named(lab, run_bisect):
    revisions = make_repository(lab.parent / "repository", [150.0, 150.0, 150.0, None, None, 140.0, 140.0])
    result = run_bisect(lab, revisions[0], revisions[-1])
    assert result.status == 0
    assert "left out" in result.out
    for number in (3, 4, 5):
        assert f"change {number}\n" in result.out
    assert "change 2" not in result.out


@pytest.mark.whole
def test_no_change_is_said_and_is_no_success(lab, run_bisect):
    revisions = make_repository(lab.parent / "repository", [150.0] * 4)
    result = run_bisect(lab, revisions[0], revisions[-1])
    assert result.status == 1
    assert "no change that matters" in result.out


@pytest.mark.whole
def test_several_values_need_a_choice(lab, run_bisect):
    revisions = make_repository(lab.parent / "repository", [150.0, 140.0])
    result = run_bisect(lab, revisions[0], revisions[-1], test=None)
    assert result.status == 2
    assert "A bisection follows one value, but several were measured" in result.err


def test_revisions_are_those_of_first_parents_from_the_good_to_the_bad_one(tmp_path):
    repository = tmp_path / "repository"
    revisions = make_repository(repository, [1.0, 2.0])
    git(repository, "checkout", "--quiet", "-b", "side", revisions[0])
    git(repository, "commit", "--quiet", "--allow-empty", "--message", "aside")
    git(repository, "checkout", "--quiet", "main")
    git(repository, "merge", "--quiet", "--no-ff", "--message", "merge", "side")
    merge = git(repository, "rev-parse", "main")
    assert revisions_between(revisions[0], "main", repository) == (*revisions, merge)


@pytest.mark.parametrize(
    ("good", "bad", "message"),
    [
        ("main", "main~1", "does not come after .* Name an earlier revision with --good"),
        ("x", "main", "repository has no revision 'x'. 'git log' shows its revisions"),
        ("--frob", "main", "repository has no revision '--frob'"),
        ("main", "x" * 5000, "has no revision 'xxx"),
    ],
)
def test_revisions_that_make_no_sense_are_errors(tmp_path, good, bad, message):
    make_repository(tmp_path / "repository", [1.0, 2.0])
    with pytest.raises(BuildError, match=message):
        revisions_between(good, bad, tmp_path / "repository")


@pytest.mark.parametrize("folder", ["absent", "x" * 5000, "a file", "empty"])
def test_a_folder_that_is_no_repository_is_named_with_the_option(tmp_path, folder):
    (tmp_path / "a file").touch()
    (tmp_path / "empty").mkdir()
    with pytest.raises(
        BuildError, match=r"^git rev-parse failed in .* Name a git repository with --repository\.$"
    ) as told:
        revisions_between("a", "b", tmp_path / folder)
    assert "fatal" not in str(told.value)
    assert len(str(told.value)) < 800
