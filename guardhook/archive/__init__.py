"""Archives: a recording that can be kept, packed, opened, and told in plain words."""
