"""Trends as one HTML page, with a picture for each series, and what somebody should look at first."""

from __future__ import annotations

import jinja2

from lossratio.history.analysis import Analysis
from lossratio.history.trend import TrendVerdict
from lossratio.history.trend_picture import draw_trend
from lossratio.history.trend_text import describe_trend


def trend_page(analysis: Analysis, title: str) -> str:
    """The page of some trends.

    Args:
        analysis: The trends.
        title: What the page is headed with.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("lossratio.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    order = list(TrendVerdict)
    trends = sorted(analysis.trends, key=lambda trend: order.index(trend.verdict))
    return environment.get_template("trend.html.jinja").render(
        title=title,
        trends=[(trend, draw_trend(trend, analysis.known), describe_trend(trend)) for trend in trends],
        problems=analysis.problems,
    )
