// The theme's frame loads this on every page of the admin. Pages that draw load Chart.js itself, "chartjs/chart.js".
