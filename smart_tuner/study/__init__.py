"""THE LOOP: settings, study folder, budget, resume, finalists, tune()."""
