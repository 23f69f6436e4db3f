"""The dashboard of a lab: a static site over a history, which loads the data of a view when it is opened."""

from lossratio.dashboard.site import SiteRequest, serve_site, write_site
