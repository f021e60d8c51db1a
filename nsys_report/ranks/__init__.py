"""Many ranks of one run: their executions and clocks aligned, who waits for whom at each collective, and why."""
