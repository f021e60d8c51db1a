"""A typical step's work by what people call it, source line, layer, parameter, class, opcode or phase."""
