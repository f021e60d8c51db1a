"""What costs time and what to do about it: `apply.find(joined, results)` makes the findings, `model.Finding` is one of them."""
