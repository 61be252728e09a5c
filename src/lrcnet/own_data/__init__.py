"""A user's own file without code: read it, understand it, fit, measure, report and predict (extra [fit])."""
