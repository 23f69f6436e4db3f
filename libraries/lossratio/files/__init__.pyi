"""The public names, listed once: type checkers read them here, and the room imports each on first use."""

from .callouts import (
    CallError as CallError,
    run_program as run_program,
    said_by as said_by,
    shown as shown,
    without_secrets as without_secrets,
)
from .input_file import (
    MOST_RECORDED_BYTES as MOST_RECORDED_BYTES,
    as_path as as_path,
    check_directory as check_directory,
    is_url as is_url,
    kind_of_contents as kind_of_contents,
    parse_json as parse_json,
    read_input_file as read_input_file,
    require_writable as require_writable,
    said_if_newer as said_if_newer,
    shell_word as shell_word,
    shown_name as shown_name,
    way_to_read as way_to_read,
)
from .plugins import (
    distribution_of as distribution_of,
    how_to_install as how_to_install,
    how_to_install_package as how_to_install_package,
    not_installed as not_installed,
    plugin_group as plugin_group,
)
from .shipped import SUITES as SUITES, TOPOLOGIES as TOPOLOGIES, Shipped as Shipped
from .yaml_file import (
    Location as Location,
    Problem as Problem,
    describe_problem as describe_problem,
    load_yaml_file as load_yaml_file,
)
