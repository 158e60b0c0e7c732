"""One drill run, or a batch of them: session, runner, engines."""
