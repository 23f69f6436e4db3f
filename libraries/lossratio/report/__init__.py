"""Reports of a run: page, tables, comparison, CSIT's format."""

from lossratio.report.comparison import (
    LEAST_CHANGE,
    SIGNIFICANCE,
    Difference,
    compare,
    comparison_cases,
    comparison_markdown,
    comparison_table,
    difference_at_most,
    real_change,
)
from lossratio.report.csit import csit_export, write_csit
from lossratio.report.failures import (
    CUT_OFF,
    FAILED,
    Misfits,
    begin_failures,
    facts_of,
    forget_failure,
    misfits_of,
    note_failure,
    note_skip,
    noted_failures,
    reason_of_skip,
    skips_in_words,
    what_a_skip_is,
)
from lossratio.report.formats import FORMATS, PAGE, ReportFormat, render, report_format
from lossratio.report.junit import Case, judged_case, junit_xml
from lossratio.report.listener import PAGE_VARIABLE, RunReport, write_report, write_reports
from lossratio.report.page_of_comparison import comparison_page
from lossratio.report.run import NOTHING_MEASURED, RECORD, Run, read_run, runs_in
from lossratio.report.verdict import Verdict, verdicts_counted
