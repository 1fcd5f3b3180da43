// Package promtest has tests with a real Prometheus: that it reads the metrics of a running load, that the queries of
// the dashboard in deploy/ return data and the console's figures, over a restart of Prometheus, too, and that the
// alerts fire; and that remote write gives it the same.
package promtest
