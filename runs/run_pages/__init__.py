"""What the pages of one run show: rows as they are read, and the views composed of them."""
