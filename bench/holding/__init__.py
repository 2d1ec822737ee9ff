"""Long runs that hold atlas to its promises on days when machines die; see ../hold.py."""
