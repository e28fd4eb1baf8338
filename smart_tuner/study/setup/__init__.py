"""What a study is asked to do: settings, base, identity and the plan that they make."""
