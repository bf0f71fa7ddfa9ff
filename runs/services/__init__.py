"""Services: what is written, and in which transactions. They hold no rules of a debate."""
