"""Trends as one HTML page, with a picture for each series, and what somebody should look at first."""

from __future__ import annotations

from lossratio.drawing import html_page
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
    order = list(TrendVerdict)
    trends = sorted(analysis.trends, key=lambda trend: order.index(trend.verdict))
    return html_page(
        "trend.html.jinja",
        title=title,
        trends=[(trend, draw_trend(trend, analysis.known), describe_trend(trend)) for trend in trends],
        problems=analysis.problems,
    )
