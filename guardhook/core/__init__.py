"""Plain data that every layer shares. Nothing here may import anything that costs start-up time."""
