"""What programs do with their arguments, one module per area. `index` names the area of each program and loads it when one is called."""
