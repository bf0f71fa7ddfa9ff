"""How people are asked, purely: the design of a queue, what is drawn, and what a label may be."""
