"""When and how long things ran: programs, devices, kernels, phases, and whose each busy nanosecond is."""
