"""The credit laboratory: rules tried on simulated populations, and measured on an app's own results."""
