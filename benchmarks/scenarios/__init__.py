"""What can be measured: a module or package each, with a `command` that `harness.scenario` makes."""
