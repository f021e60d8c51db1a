"""`python -m nsys_report` is `nsys-report`."""

from nsys_report.cli.app import main

main()
