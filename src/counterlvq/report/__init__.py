"""One page about some answers, in HTML that needs nothing else and asks no one."""

from counterlvq.report.write import report_html, write_report

__all__ = ["report_html", "write_report"]
