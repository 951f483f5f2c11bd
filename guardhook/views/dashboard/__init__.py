"""The store at a glance, full screen: sessions under way, what the gate objected to, and how much there is of everything."""
