"""A trace, or two side by side, as one HTML file that needs nothing else: no network, no server, no second file."""
