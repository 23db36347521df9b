"""`dragoman train` that says when its first step is done: what the benchmark starts."""

import os
import sys
import time

from dragoman_training.__main__ import main
from dragoman_training.run.reporter import Reporter, StepReport

FIRST_STEP = "first step at "


class _Timed(Reporter):
    def step(self, report: StepReport) -> None:
        if report.step == 1:
            # The elapsed time is not this process's.
            busy = sum(os.times()[:4])
            print(f"{FIRST_STEP}{time.time()} {busy}", file=sys.stderr, flush=True)
        super().step(report)


if __name__ == "__main__":
    from dragoman_training.run import reporter

    reporter.Reporter = _Timed  # type: ignore[misc]
    main()
