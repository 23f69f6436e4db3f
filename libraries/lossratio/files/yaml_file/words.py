"""PyYAML's problems in plain words."""

import re

import yaml

from lossratio.files.yaml_file.loader import RefusedError

_WRONG_INDENTATION = (
    "the indentation does not fit the lines above; fields of one mapping begin in one column"
)
_UNKNOWN_PROBLEM = "this line, or one shortly before it, cannot be read; put texts in quotes"
# Table: PyYAML's message as a regular expression, and the user's mistake; {} stands for the match of the group.
_IN_PLAIN_WORDS = (
    (r"found character '\\t'", "the indentation has a tab; use spaces"),
    (r"found character '(.)'", "a text cannot begin with {}; put the text in quotes"),
    (
        r"sequence entries are not allowed here",
        "a list begins on a line of its own, or is written as [a, b]",
    ),
    (
        r"expected <block end>, but found '([]}])'",
        "{} closes a bracket that was not opened; leave it out",
    ),
    (
        r"expected <block end>, but found '(,|<scalar>)'",
        "there is more after the end of a value; quote it as a whole",
    ),
    (r"expected <block end>", _WRONG_INDENTATION),
    (
        r"could not find expected ':'",
        "a field needs ': ' between its name and its value; is the space missing?",
    ),
    (
        r"expected ',' or",
        "a bracket that is opened on line {line} is not closed, or a comma is missing",
    ),
    (r"found unexpected", "a quote that is opened on line {line} is not closed"),
    (
        r"expected the node content, but found '(.)'",
        "a value is missing before {}; put a text in quotes",
    ),
    (r"expected the node content", "a value is missing at the end of this line"),
    (
        r"found unknown escape character '(.*)'",
        r"\{} has no meaning in double quotes; put the text in single quotes",
    ),
    (
        r"expected (?:chomping or indentation|a comment or a line break|indentation indicator)",
        "a text after | or > begins on the next line; put a text that begins so in quotes",
    ),
    (
        r"(?:but found another document|expected '<document start>')",
        "a file can have only one document, and it ends before this line; use a file for each",
    ),
    (
        r"found undefined alias '(.*)'",
        "nothing is named &{0}, to which *{0} refers; put a text in quotes",
    ),
    (r"second occurrence", "the same &name appears twice; give each value a name of its own"),
    (
        r"(?:could not determine a constructor|found undefined tag|expected '>'|expected '!')",
        "a value has a tag (!name), which has no meaning here; leave it out, or put the text in quotes",
    ),
    (
        r"(?:expected URI|expected escape sequence|expected a digit|expected ' ')",
        "a % or ! begins something that is not complete; put the text in quotes",
    ),
    (
        r"mapping keys are not allowed here",
        "a '? ' begins a field on a line of its own; put a text that begins with it in quotes",
    ),
    (r"expected alphabetic or numeric character", "a text that begins with &, * or % needs quotes"),
    (r"found unhashable key", "the name of a field must be a text, not a list or fields"),
    (
        r"expected .*for merging",
        "<< takes over the fields of another mapping, so its value must be one, such as *name",
    ),
    (
        r"expected a (?:mapping|sequence|scalar)",
        "the value is not of the type that its tag (!!name) says",
    ),
    (r"found incompatible YAML", "the line %YAML names an unknown version; leave the line out"),
)


def plain_words(cause: yaml.YAMLError) -> str:
    """PyYAML's problem with a text as the user's mistake, and the way out."""
    problem = str(getattr(cause, "problem", None))
    if isinstance(cause, RefusedError):
        return problem

    mark = getattr(cause, "problem_mark", None)
    if mark is not None and problem == "mapping values are not allowed here":
        return _of_a_colon(mark)
    opened = getattr(cause, "context_mark", None)
    line = 1 if opened is None else opened.line + 1
    for said, words in _IN_PLAIN_WORDS:
        if match := re.match(said, problem):
            return words.format(*match.groups(), line=line)
    return _UNKNOWN_PROBLEM


def _of_a_colon(mark: yaml.Mark) -> str:
    """The mistake of which PyYAML only notices that a ``: `` is at a place where no field can begin."""
    lines = str(mark.buffer).splitlines()
    if ": " in lines[mark.line][: mark.column]:
        return "there are two ': ' on one line; quote a text that contains ': '"
    above = [line for line in lines[: mark.line] if line.strip(" ")[:1] not in ("", "#")]
    if re.search(r":(\s|$)", above[-1]):
        return _WRONG_INDENTATION
    return "the line above has no ': ' between the name of a field and its value"
