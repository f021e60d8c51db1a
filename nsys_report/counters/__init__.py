"""What hardware counted: sampled GPU metrics of the capture, and kernels profiled by Nsight Compute, laid beside the implied bytes."""
