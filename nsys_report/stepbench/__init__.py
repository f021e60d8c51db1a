"""Times the steps of a program in the same process: `nsys_report.StepBenchmark`."""
