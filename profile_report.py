#!/usr/bin/env python3
"""`python profile_report.py CAPTURE ...` is `nsys-report report CAPTURE ...`."""

from nsys_report.cli.app import main

if __name__ == "__main__":
    main()
