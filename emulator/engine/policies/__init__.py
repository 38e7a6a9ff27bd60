"""The scheduling policies: which jobs run, which project is asked for work. Each module cites its document."""
