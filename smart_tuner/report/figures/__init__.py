"""Pictures of what was analysed: each function takes typed data and returns a plotly figure."""
