"""What the observability layer is made of, as pure functions: scraping, rules, dashboards, values of the chart."""
